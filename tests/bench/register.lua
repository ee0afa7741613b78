-- wrk: each request registers one sitemap that was never registered before. The first comes from
-- the environment, so that rounds do not meet.
local number = tonumber(os.getenv("BENCH_FIRST"))
local loc = os.getenv("BENCH_LOC") or "https://www.example.com/sitemaps/single/part-"
local headers = {
    ["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN"),
    ["Content-Type"] = "application/json",
}

function request()
    number = number + 1
    local body = string.format(
        '{"loc":"%s%09d.xml.gz","lastmod":"2026-11-02T08:30:00Z"}', loc, number)
    return wrk.format("POST", "/v1/sitemaps", headers, body)
end
