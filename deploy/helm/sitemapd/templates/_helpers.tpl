{{- define "sitemapd.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- with .Shard }}-{{ . }}{{ end -}}
{{- end }}

{{/* A template for each shard, with its name in .Shard and its own sites, sources and hosts; without shards, once. */}}
{{- define "sitemapd.each" }}
{{- $template := index . 0 }}
{{- $root := index . 1 }}
{{- $values := $root.Values }}
{{- $one := dict "sites" $values.sites "sources" $values.sources "hosts" $values.public.hosts }}
{{- range $shard, $own := $values.shards | default (dict "" $one) }}
{{- $public := set (deepCopy $values.public) "hosts" ($own.hosts | default list) }}
{{- $more := dict "sites" ($own.sites | default dict) "sources" ($own.sources | default dict) "public" $public }}
{{- $context := dict "Shard" $shard "Values" (merge $more (omit $values "sites" "sources" "public")) "Chart" $root.Chart "Release" $root.Release }}
{{- with include $template $context | trim | trimPrefix "---\n" }}
---
{{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sitemapd.selector" -}}
app.kubernetes.io/name: sitemapd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Shard }}
shard: {{ . }}
{{- end }}
{{- end }}

{{- define "sitemapd.labels" -}}
{{ include "sitemapd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "sitemapd.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The lines of a section: a list repeats the setting, true and false are yes and no. */}}
{{- define "sitemapd.section" -}}
{{- range $key, $value := . }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
{{ $key }} = {{ if kindIs "bool" . }}{{ ternary "yes" "no" . }}{{ else if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}
{{- end }}
{{ end }}

{{/* sitemapd.conf. The admin listener answers to the names of its Service. A node of a shared catalogue that is being stopped answers requests until no Service routes to it. */}}
{{- define "sitemapd.configuration" -}}
{{- $service := printf "%s-admin" (include "sitemapd.name" .) }}
{{- $namespace := printf "%s.%s" $service .Release.Namespace }}
{{- $names := list (printf "%s %s %s.svc %s.svc.cluster.local" $service $namespace $namespace $namespace) }}
{{- $settings := deepCopy .Values.settings }}
{{- $admin := get $settings "admin" | default dict }}
{{- $own := get $admin "allowed_hosts" | default list }}
{{- $own = kindIs "slice" $own | ternary $own (list $own) }}
{{- $settings = set $settings "admin" (merge (dict "allowed_hosts" (concat $names $own)) $admin) }}
{{- if .Values.shared.enabled }}{{ $settings = merge $settings (dict "server" (dict "shutdown_delay" "5s")) }}{{ end }}
{{- range $section, $lines := $settings }}
[{{ $section }}]
{{- include "sitemapd.section" $lines }}
{{- end }}
{{- range $name, $lines := .Values.sites }}
[site "{{ $name }}"]
{{- include "sitemapd.section" $lines }}
{{- end }}
{{- range $name, $lines := .Values.sources }}
[source "{{ $name }}"]
{{- include "sitemapd.section" $lines }}
{{- end }}
{{- end }}

{{/* "yes" if the configuration makes the server poll, notify, trace, or query a search engine. */}}
{{- define "sitemapd.asksOthers" -}}
{{- $asks := or (dig "notify" "url" "" .Values.settings) (dig "trace" "endpoint" "" .Values.settings) }}
{{- range $section, $_ := .Values.settings }}{{ if hasPrefix "engine " $section }}{{ $asks = "yes" }}{{ end }}{{ end }}
{{- range .Values.sources }}{{ if .upstream }}{{ $asks = "yes" }}{{ end }}{{ end }}
{{- range .Values.sites }}{{ if or .check .indexnow_key }}{{ $asks = "yes" }}{{ end }}{{ end }}
{{- if $asks }}yes{{ end }}
{{- end }}

{{/* public.hosts, or else the hosts of the sites' origins, as a JSON list. */}}
{{- define "sitemapd.hosts" -}}
{{- $hosts := .Values.public.hosts }}
{{- if not $hosts }}
{{- range .Values.sites }}{{ $hosts = append $hosts (regexReplaceAll "^https?://([^/:]+).*$" .origin "${1}") }}{{ end }}
{{- end }}
{{- if not (or $hosts .Shard) }}{{ fail "a route needs hosts: set sites, or public.hosts" }}{{ end }}
{{- $hosts | uniq | toJson }}
{{- end }}

{{/* The URL and schema of the shared log: one database for all shards. */}}
{{- define "sitemapd.sharedEnv" -}}
- name: SITEMAPD_SHARED
  valueFrom:
    secretKeyRef: {name: {{ .Values.existingSecret }}, key: shared}
{{- with .Shard }}
- {name: SITEMAPD_SHARED_SCHEMA, value: {{ printf "sitemapd_%s" . }}}
{{- end }}
{{- end }}

{{- define "sitemapd.lockedDown" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
