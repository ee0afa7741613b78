/* SPDX-License-Identifier: LicenseRef-Undeclared */
// node npm_sitemap.mjs OUT COUNT ROUNDS: writes a gzipped index of COUNT entries with the package
// `sitemap`, in the two ways of its documentation, and prints the time of each round as JSON. Piped
// into gzip each of its small pieces goes to another thread; collected first, they go at once.
import { createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip, gzipSync } from 'node:zlib';
import { SitemapIndexStream, streamToPromise } from 'sitemap';

const [out, count, rounds] = [process.argv[2], +process.argv[3], +process.argv[4]];

// harness.py's entries, made before the clock runs.
function* make() {
  for (let n = 0; n < count; n++) {
    const at = 1789000000 + Number(((BigInt(n) * 2654435761n) % 4294967296n) % 5184000n);
    yield {
      url: `https://www.example.com/sitemaps/catalogue/part-${String(n).padStart(8, '0')}.xml.gz`,
      lastmod: new Date(at * 1000).toISOString(),
    };
  }
}

const entries = [...make()];
const ways = {
  collected: async () => {
    const xml = await streamToPromise(Readable.from(entries).pipe(new SitemapIndexStream()));
    await writeFile(out, gzipSync(xml));
  },
  piped: () =>
    pipeline(Readable.from(entries), new SitemapIndexStream(), createGzip(), createWriteStream(out)),
};

for (let round = 0; round <= rounds; round++) {
  for (const [way, write] of Object.entries(ways)) {
    const began = performance.now();
    await write();
    if (round > 0) console.log(JSON.stringify({ way, ms: performance.now() - began }));
  }
}
