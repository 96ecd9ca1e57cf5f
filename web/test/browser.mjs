// A browser and a server for tests: Debian's Chromium, without a window, and the files of the page.

import { createReadStream, existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};

/** Serves a folder on loopback, plain or compressed files alike. */
export async function serve(folder) {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname).replace(/^\/+/, "") || "index.html";
    const type = TYPES[extname(path)] ?? "application/octet-stream";
    const [plain, packed] = [join(folder, path), join(folder, `${path}.br`)];
    if (existsSync(plain)) {
      response.writeHead(200, { "content-type": type });
      createReadStream(plain).pipe(response);
    } else if (existsSync(packed)) {
      response.writeHead(200, { "content-type": type, "content-encoding": "br" });
      createReadStream(packed).pipe(response);
    } else {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    address: `http://127.0.0.1:${server.address().port}/`,
    close: () => server.close(),
  };
}

export async function launch() {
  const profile = mkdtempSync(join(tmpdir(), "quorate-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    viewport: { width: 1440, height: 900 },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  return {
    context,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
