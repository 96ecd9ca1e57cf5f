// The engines without a browser: for tests, and for lists that are made once.

import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";

/** Loads the module, compressed or not, and gives a function that asks it. */
export async function engine(path) {
  const bytes = readFileSync(path);
  const module = await WebAssembly.compile(path.endsWith(".br") ? brotliDecompressSync(bytes) : bytes);
  let exports;
  let broken = "";
  const text = (start, length) => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, start, length));
  const imports = {
    page: {
      told() {},
      broke(start, length) {
        broken = text(start, length);
      },
    },
  };
  const fresh = async () => {
    exports = (await WebAssembly.instantiate(module, imports)).exports;
  };
  await fresh();
  return async (question) => {
    const asked = new TextEncoder().encode(JSON.stringify(question));
    try {
      const room = exports.lab_room(asked.length);
      new Uint8Array(exports.memory.buffer, room, asked.length).set(asked);
      const length = exports.lab_ask();
      const start = exports.lab_answer();
      const bytes = exports.memory.buffer.slice(start, start + length);
      const size = Number(new DataView(bytes).getBigUint64(0, true));
      return JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, size)));
    } catch (error) {
      await fresh();
      return { broke: broken || String(error) };
    }
  };
}
