// The page's side of the engines: questions go to a worker, answers come back as objects with columns.

export type Column = Float64Array | Int32Array | Uint8Array;

export interface Answer {
  [name: string]: unknown;
  columns: Record<string, Column>;
}

/** An argument that makes no sense, and why. */
export class Refused extends Error {
  constructor(
    readonly argument: string,
    reason: string,
  ) {
    super(reason);
  }
}

/** The work was given up. */
export class Cancelled extends Error {}

interface Waiting {
  done(answer: Answer): void;
  failed(error: Error): void;
  told?: (progress: Record<string, unknown>) => void;
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** Begins to load the engines. They are loaded once, whatever number of workers there is. */
export function load(): Promise<WebAssembly.Module> {
  compiled ??= WebAssembly.compileStreaming(fetch("engine.wasm"));
  return compiled;
}

function read(buffer: ArrayBuffer): Answer {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const text = new TextDecoder().decode(new Uint8Array(buffer, 8, length));
  const json = JSON.parse(text) as Record<string, unknown>;
  const base = Math.ceil((8 + length) / 8) * 8;
  const columns: Record<string, Column> = {};
  const places = (json["columns"] ?? {}) as Record<string, [string, number, number]>;
  for (const [name, [kind, first, count]] of Object.entries(places)) {
    const at = base + first;
    columns[name] =
      kind === "f64"
        ? new Float64Array(buffer, at, count)
        : kind === "i32"
          ? new Int32Array(buffer, at, count)
          : new Uint8Array(buffer, at, count);
  }
  const refused = json["refused"] as { argument: string; reason: string } | undefined;
  if (refused) throw new Refused(refused.argument, refused.reason);
  return { ...json, columns };
}

/** A worker with the engines. What it was asked before is remembered as long as it lives. */
export class Engine {
  private worker: Worker | undefined;
  private ready: Promise<void> | undefined;
  private waiting = new Map<number, Waiting>();
  private next = 1;

  private start(): Promise<void> {
    if (this.ready) return this.ready;
    const worker = new Worker("worker.js", { type: "module" });
    this.worker = worker;
    this.ready = new Promise((resolve, reject) => {
      worker.addEventListener("message", (event) => {
        if (event.data.ready) resolve();
        else this.heard(event.data);
      });
      worker.addEventListener("error", () => reject(new Error("the engines could not be started")));
      load().then((module) => worker.postMessage({ module }), reject);
    });
    return this.ready;
  }

  private heard(data: {
    id: number;
    told?: Record<string, unknown>;
    answer?: ArrayBuffer;
    broke?: string;
  }): void {
    const waiting = this.waiting.get(data.id);
    if (!waiting) return;
    if (data.told) {
      waiting.told?.(data.told);
      return;
    }
    this.waiting.delete(data.id);
    if (data.broke !== undefined) {
      // Its memory may be in disorder: the next question gets a new one.
      this.stop();
      waiting.failed(new Error(data.broke));
      return;
    }
    try {
      waiting.done(read(data.answer!));
    } catch (error) {
      waiting.failed(error as Error);
    }
  }

  /** Asks, and is told how far it is. */
  async ask(
    question: Record<string, unknown>,
    told?: (progress: Record<string, unknown>) => void,
  ): Promise<Answer> {
    await this.start();
    const id = this.next++;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed, told });
      this.worker!.postMessage({ id, question: JSON.stringify(question) });
    });
  }

  /** Gives up whatever is being worked on, and forgets all runs. */
  stop(): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.ready = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of waiting) one.failed(new Cancelled("cancelled"));
  }
}

/** For what is answered at once: runs, details, explanations. */
export const quick = new Engine();
/** For checks, which may take long. */
export const long = new Engine();
/** For comparisons and sweeps, which may take long too, and do not wait for a check. */
export const measuring = new Engine();
/** For the shortest ways that those who schedule ask for. */
export const advising = new Engine();
