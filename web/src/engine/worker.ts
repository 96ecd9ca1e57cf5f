// The engines, in a worker: the page stays quick whatever they do. One question at a time; whoever does
// not want to wait for an answer ends the worker.

interface Exports {
  memory: WebAssembly.Memory;
  lab_room(length: number): number;
  lab_ask(): number;
  lab_answer(): number;
}

type In = { module: WebAssembly.Module } | { id: number; question: string };

let engine: Exports | undefined;
let current = 0;
let broken = "";
/** When the page was last told how far a work is. */
let toldAt = 0;
const PATIENCE_MS = 50;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

function text(start: number, length: number): string {
  return decoder.decode(new Uint8Array(engine!.memory.buffer, start, length));
}

const imports = {
  page: {
    told(start: number, length: number): void {
      const now = performance.now();
      if (now - toldAt < PATIENCE_MS) return;
      toldAt = now;
      postMessage({ id: current, told: JSON.parse(text(start, length)) });
    },
    broke(start: number, length: number): void {
      broken = text(start, length);
    },
  },
};

function ask(question: string): ArrayBuffer {
  const bytes = encoder.encode(question);
  const room = engine!.lab_room(bytes.length);
  new Uint8Array(engine!.memory.buffer, room, bytes.length).set(bytes);
  const length = engine!.lab_ask();
  const start = engine!.lab_answer();
  return engine!.memory.buffer.slice(start, start + length);
}

addEventListener("message", async (event: MessageEvent<In>) => {
  const data = event.data;
  if ("module" in data) {
    const instance = await WebAssembly.instantiate(data.module, imports);
    engine = instance.exports as unknown as Exports;
    postMessage({ ready: true });
    return;
  }
  current = data.id;
  broken = "";
  try {
    const answer = ask(data.question);
    postMessage({ id: data.id, answer }, { transfer: [answer] });
  } catch (error) {
    postMessage({ id: data.id, broke: broken || String(error) });
  }
});
