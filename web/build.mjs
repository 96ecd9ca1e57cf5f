// Builds the page into a folder: bundles the sources, takes the engines as they were built, and compresses
// everything. `cargo xtask web` calls it; nothing else has to.
//
//   node build.mjs OUT ENGINE [--plain]
//
// OUT is the folder, ENGINE the WebAssembly module. With --plain the files are written as they are, for
// those who work on the page; otherwise only compressed.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";

const [out, engine, form] = process.argv.slice(2);
if (!out || !engine) {
  console.error("usage: node build.mjs OUT ENGINE [--plain]");
  process.exit(2);
}
const here = dirname(fileURLToPath(import.meta.url));
const plain = form === "--plain";

const bundled = await build({
  absWorkingDir: here,
  entryPoints: { lab: "src/main.tsx", worker: "src/engine/worker.ts", style: "src/lab.css" },
  outdir: "out",
  bundle: true,
  write: false,
  minify: !plain,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".md": "text", ".woff2": "file", ".jsonl": "text" },
  assetNames: "[name]",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
});

/**
 * The module has the whole source of every algorithm in it, of which the page shows the header, and steps
 * that it has apart. The rest is blanked: the text keeps its length, and compresses to nothing.
 */
function withoutCode(module) {
  const folders = ["../crates/algorithms/src", "../crates/service/src"].map((folder) => join(here, folder));
  const files = folders.flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, name)));
  for (const file of files.filter((name) => name.endsWith(".rs"))) {
    const text = readFileSync(file, "utf8");
    const header = text.match(/^(\/\/!.*\n)+/)?.[0] ?? "";
    const place = module.indexOf(Buffer.from(text));
    if (header === "" || place < 0) continue;
    module.fill(0x20, place + Buffer.byteLength(header), place + Buffer.byteLength(text));
  }
  return module;
}

const files = new Map([
  ["index.html", readFileSync(join(here, "index.html"))],
  ["engine.wasm", withoutCode(readFileSync(engine))],
]);
for (const file of bundled.outputFiles) {
  const name = basename(file.path).replace("style.css", "lab.css");
  files.set(name, Buffer.from(file.contents));
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
let total = 0;
for (const [name, bytes] of [...files].sort()) {
  if (plain) {
    writeFileSync(join(out, name), bytes);
    continue;
  }
  // Letters are compressed already.
  const packed = name.endsWith(".woff2")
    ? bytes
    : brotliCompressSync(bytes, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: 11,
          [constants.BROTLI_PARAM_LGWIN]: 24,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        },
      });
  total += packed.length;
  writeFileSync(join(out, name.endsWith(".woff2") ? name : `${name}.br`), packed);
  console.log(`${name}: ${bytes.length} bytes, ${packed.length} compressed`);
}
if (!plain) console.log(`all: ${total} bytes compressed`);
