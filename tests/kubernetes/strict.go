/* SPDX-License-Identifier: LicenseRef-Undeclared */
// strict FILE...: decodes each document by Kubernetes' own types, where a field that they do not have,
// that stands twice, or that has another type is an error, and checks what types cannot tell: that
// selectors find the pods, ports have names, and the disruption budget lets a node drain.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Kinds of the Prometheus operator and of the Gateway API, as far as they are used here: their own types are in no
// package, so these say what is meant and prove no more than that.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		JobLabel     string               `json:"jobLabel"`
		TargetLabels []string             `json:"targetLabels"`
		Selector     metav1.LabelSelector `json:"selector"`
		Endpoints    []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Record      string            `json:"record"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type httpRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ParentRefs []struct {
			Name        string `json:"name"`
			Namespace   string `json:"namespace"`
			SectionName string `json:"sectionName"`
		} `json:"parentRefs"`
		Hostnames []string `json:"hostnames"`
		Rules     []struct {
			Matches []struct {
				Path struct {
					Type  string `json:"type"`
					Value string `json:"value"`
				} `json:"path"`
			} `json:"matches"`
			BackendRefs []struct {
				Name string `json:"name"`
				Port int32  `json:"port"`
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}

// All objects; of a chart with shards, also those of one shard.
type objects struct {
	sets     []*appsv1.StatefulSet
	services []*corev1.Service
	policies []*networkingv1.NetworkPolicy
	budgets  []*policyv1.PodDisruptionBudget
	configs  map[string]bool
	secrets  map[string]bool
	monitors []*serviceMonitor
	rules    []*prometheusRule
	routes   []*httpRoute
	ingress  []*networkingv1.Ingress
}

var faults int

func fault(format string, arguments ...any) {
	faults++
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}

func (o *objects) decode(name string, document []byte) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		fault("%s: %v", name, err)
		return
	}
	var into any
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 StatefulSet":
		set := &appsv1.StatefulSet{}
		o.sets = append(o.sets, set)
		into = set
	case "v1 Service":
		service := &corev1.Service{}
		o.services = append(o.services, service)
		into = service
	case "v1 ConfigMap":
		into = &corev1.ConfigMap{}
	case "v1 Secret":
		into = &corev1.Secret{}
	case "networking.k8s.io/v1 NetworkPolicy":
		policy := &networkingv1.NetworkPolicy{}
		o.policies = append(o.policies, policy)
		into = policy
	case "policy/v1 PodDisruptionBudget":
		budget := &policyv1.PodDisruptionBudget{}
		o.budgets = append(o.budgets, budget)
		into = budget
	case "monitoring.coreos.com/v1 ServiceMonitor":
		monitor := &serviceMonitor{}
		o.monitors = append(o.monitors, monitor)
		into = monitor
	case "monitoring.coreos.com/v1 PrometheusRule":
		rule := &prometheusRule{}
		o.rules = append(o.rules, rule)
		into = rule
	case "networking.k8s.io/v1 Ingress":
		ingress := &networkingv1.Ingress{}
		o.ingress = append(o.ingress, ingress)
		into = ingress
	case "gateway.networking.k8s.io/v1 HTTPRoute":
		route := &httpRoute{}
		o.routes = append(o.routes, route)
		into = route
	default:
		fault("%s: unknown: %s %s", name, kind.APIVersion, kind.Kind)
		return
	}
	text, err := yaml.YAMLToJSONStrict(document) // a key that stands twice
	if err != nil {
		fault("%s: %s: %v", name, kind.Kind, err)
		return
	}
	// The API server's decoder: names count with their case.
	wrong, err := json.UnmarshalStrict(text, into)
	if err != nil {
		wrong = append(wrong, err)
	}
	for _, one := range wrong {
		fault("%s: %s: %v", name, kind.Kind, one)
	}
	meta := into.(metav1.Object)
	switch into.(type) {
	case *corev1.ConfigMap:
		o.configs[meta.GetName()] = true
	case *corev1.Secret:
		o.secrets[meta.GetName()] = true
	}
}

func finds(selector *metav1.LabelSelector, set labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(set)
}

func (o *objects) checkSet(set *appsv1.StatefulSet, whole bool) {
	pod := set.Spec.Template
	if !finds(set.Spec.Selector, pod.Labels) {
		fault("the StatefulSet does not find its own pods")
	}
	shared := false // a catalogue of several nodes by PostgreSQL: each keeps a copy that it can fetch anew
	for _, variable := range pod.Spec.Containers[0].Env {
		shared = shared || variable.Name == "SITEMAPD_SHARED"
	}
	if set.Spec.Replicas == nil || (*set.Spec.Replicas != 1 && !shared) {
		fault("a catalogue has one writer: replicas must be 1")
	}
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		if !finds(spread.LabelSelector, pod.Labels) {
			fault("a spread over %s finds no pods", spread.TopologyKey)
		}
	}
	volumes := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = true
		if volume.Name == "configuration" && (volume.ConfigMap == nil || !o.configs[volume.ConfigMap.Name]) {
			fault("no ConfigMap for the configuration")
		}
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		volumes[claim.Name] = true
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				fault("no volume %s", mount.Name)
			}
		}
	}
	named := map[string]bool{}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			named[port.Name] = true
		}
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			if probe == nil || probe.HTTPGet == nil || !named[probe.HTTPGet.Port.StrVal] {
				fault("a probe is missing, or its port")
			}
		}
		c := container.SecurityContext
		if c == nil || c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem ||
			c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation {
			fault("the container is not locked down")
		}
		for _, from := range container.EnvFrom {
			if from.ConfigMapRef != nil && !o.configs[from.ConfigMapRef.Name] {
				fault("no ConfigMap %s", from.ConfigMapRef.Name)
			}
		}
		for _, variable := range container.Env {
			if from := variable.ValueFrom; whole && from != nil && from.SecretKeyRef != nil && !o.secrets[from.SecretKeyRef.Name] {
				fault("no Secret %s", from.SecretKeyRef.Name)
			}
		}
	}
	for _, service := range o.services {
		if !finds(&metav1.LabelSelector{MatchLabels: service.Spec.Selector}, pod.Labels) {
			fault("the Service %s finds no pods", service.Name)
		}
		for _, port := range service.Spec.Ports {
			if port.TargetPort.Type != intstr.String || !named[port.TargetPort.StrVal] {
				fault("the Service %s goes to a port that no container has", service.Name)
			}
		}
	}
	for _, policy := range o.policies {
		if !finds(&policy.Spec.PodSelector, pod.Labels) {
			fault("the NetworkPolicy finds no pods")
		}
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				if port.Port == nil || !named[port.Port.StrVal] {
					fault("the NetworkPolicy names a port that no container has")
				}
				if port.Port != nil && port.Port.StrVal == "admin" && len(rule.From) == 0 {
					fault("the NetworkPolicy opens the admin listener to everybody")
				}
			}
		}
	}
	for _, budget := range o.budgets {
		if !finds(budget.Spec.Selector, pod.Labels) {
			fault("the PodDisruptionBudget finds no pods")
		}
		if most := budget.Spec.MaxUnavailable; budget.Spec.MinAvailable != nil || most == nil || most.IntVal < 1 {
			fault("the PodDisruptionBudget blocks drains: with one replica it must be maxUnavailable: 1")
		}
	}
}

// hasPort is whether a Service of that name has the port, by its name or its number.
func (o *objects) hasPort(name, port string, number int32) bool {
	for _, service := range o.services {
		for _, one := range service.Spec.Ports {
			if service.Name == name && (one.Name == port || one.Port == number) {
				return true
			}
		}
	}
	return false
}

// ofShard has what has the label of that set, and the configurations and secrets of all.
func (o *objects) ofShard(shard string) *objects {
	own := &objects{configs: o.configs, secrets: o.secrets}
	for _, service := range o.services {
		if service.Labels["shard"] == shard {
			own.services = append(own.services, service)
		}
	}
	for _, policy := range o.policies {
		if policy.Labels["shard"] == shard {
			own.policies = append(own.policies, policy)
		}
	}
	for _, budget := range o.budgets {
		if budget.Labels["shard"] == shard {
			own.budgets = append(own.budgets, budget)
		}
	}
	return own
}

// checkShards checks that each set has all its objects, and nothing of another: pods, schema, hosts.
func (o *objects) checkShards() {
	schemas, hosts := map[string]bool{}, map[string]bool{}
	for _, set := range o.sets {
		own := o.ofShard(set.Labels["shard"])
		own.checkSet(set, len(o.secrets) > 0)
		if len(own.services) != 2 || len(own.policies) != 1 || len(own.budgets) != 1 {
			fault("not all objects are there")
		}
		for _, other := range o.sets {
			if other != set && finds(set.Spec.Selector, other.Spec.Template.Labels) {
				fault("the StatefulSet %s finds pods of another shard", set.Name)
			}
		}
		for _, container := range append(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers...) {
			shared, schema := false, "sitemapd"
			for _, variable := range container.Env {
				shared = shared || variable.Name == "SITEMAPD_SHARED"
				if variable.Name == "SITEMAPD_SHARED_SCHEMA" {
					schema = variable.Value
				}
			}
			if key := container.Name + " " + schema; shared && schemas[key] {
				fault("two shards have the schema %s", schema)
			} else {
				schemas[key] = true
			}
		}
	}
	for _, route := range o.routes {
		for _, host := range route.Spec.Hostnames {
			if hosts[host] {
				fault("two HTTPRoutes have the host %s", host)
			}
			hosts[host] = true
		}
	}
}

func (o *objects) checkRoutes() {
	for _, ingress := range o.ingress {
		for _, rule := range ingress.Spec.Rules {
			if rule.Host == "" || rule.HTTP == nil || len(rule.HTTP.Paths) == 0 {
				fault("the Ingress has a rule without a host or paths")
				continue
			}
			for _, path := range rule.HTTP.Paths {
				to := path.Backend.Service
				if to == nil || !o.hasPort(to.Name, to.Port.Name, to.Port.Number) || path.PathType == nil {
					fault("the Ingress leads nowhere: %s", path.Path)
				}
			}
		}
	}
	types := map[string]bool{"Exact": true, "PathPrefix": true, "RegularExpression": true}
	for _, route := range o.routes {
		if len(route.Spec.ParentRefs) == 0 || len(route.Spec.Hostnames) == 0 || len(route.Spec.Rules) > 16 {
			fault("the HTTPRoute has no gateway, no host or too many rules")
		}
		for _, rule := range route.Spec.Rules {
			if len(rule.Matches) == 0 || len(rule.Matches) > 8 {
				fault("a rule of the HTTPRoute has %d matches", len(rule.Matches))
			}
			for _, match := range rule.Matches {
				if !types[match.Path.Type] || !strings.HasPrefix(match.Path.Value, "/") {
					fault("the HTTPRoute has an unknown match: %s %s", match.Path.Type, match.Path.Value)
				}
			}
			if len(rule.BackendRefs) != 1 || !o.hasPort(rule.BackendRefs[0].Name, "", rule.BackendRefs[0].Port) {
				fault("the HTTPRoute leads nowhere")
			}
		}
	}
}

func (o *objects) checkMonitoring() {
	for _, monitor := range o.monitors {
		found := false
		for _, service := range o.services {
			for _, port := range service.Spec.Ports {
				found = found || (finds(&monitor.Spec.Selector, service.Labels) && port.Name == monitor.Spec.Endpoints[0].Port &&
					service.Labels[monitor.Spec.JobLabel] == "sitemapd")
			}
		}
		if !found {
			fault("the ServiceMonitor finds no Service with its port and the job's name")
		}
	}
	for _, rule := range o.rules {
		count := 0
		for _, group := range rule.Spec.Groups {
			for _, one := range group.Rules {
				count++
				if (one.Alert == "") == (one.Record == "") || one.Expr == "" {
					fault("the PrometheusRule has a rule that is not whole")
				}
			}
		}
		if count < 30 {
			fault("the PrometheusRule has only %d rules", count)
		}
	}
}

func main() {
	o := &objects{configs: map[string]bool{}, secrets: map[string]bool{}}
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fault("%v", err)
			continue
		}
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			o.decode(name, document)
		}
	}
	if count := len(o.sets); count == 0 || len(o.services) != 2*count || len(o.policies) != count || len(o.budgets) != count {
		fault("not all objects are there")
	}
	o.checkShards()
	o.checkRoutes()
	o.checkMonitoring()
	if faults > 0 {
		os.Exit(1)
	}
	fmt.Println("good:", strings.Join(os.Args[1:], " "))
}
