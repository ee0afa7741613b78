-- wrk: each request registers one sitemap that was never registered before. The first comes from
-- the environment, so that rounds do not meet.
local number = tonumber(os.getenv("BENCH_FIRST"))
local headers = {
    ["Authorization"] = "Bearer " .. os.getenv("BENCH_TOKEN"),
    ["Content-Type"] = "application/json",
}

function request()
    number = number + 1
    local body = string.format(
        '{"loc":"https://www.example.com/sitemaps/single/part-%09d.xml.gz","lastmod":"2026-11-02T08:30:00Z"}',
        number)
    return wrk.format("POST", "/v1/sitemaps", headers, body)
end
