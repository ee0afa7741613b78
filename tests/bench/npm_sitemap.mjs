// node npm_sitemap.mjs OUT COUNT ROUNDS: writes a gzipped index of COUNT entries with the package
// `sitemap`, as its documentation does it, and prints the time of each round as JSON.
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { SitemapIndexStream } from 'sitemap';

const [out, count, rounds] = [process.argv[2], +process.argv[3], +process.argv[4]];

// harness.py's entries.
function* entries() {
  for (let n = 0; n < count; n++) {
    const at = 1789000000 + Number(((BigInt(n) * 2654435761n) % 4294967296n) % 5184000n);
    yield {
      url: `https://www.example.com/sitemaps/catalogue/part-${String(n).padStart(8, '0')}.xml.gz`,
      lastmod: new Date(at * 1000).toISOString(),
    };
  }
}

for (let round = 0; round <= rounds; round++) {
  const began = performance.now();
  await pipeline(Readable.from(entries()), new SitemapIndexStream(), createGzip(), createWriteStream(out));
  if (round > 0) console.log(JSON.stringify({ ms: performance.now() - began }));
}
