// Commands as the guide writes them, and where in the page they lead.

import type { Place, Word } from "./link";

export interface Command {
  line: string;
  comment: string;
  task: string;
  about: string;
  words: Word[];
}

/** What files and terminals need, and a page does not. */
const ELSEWHERE = new Set(["svg", "json", "trace", "draw", "shiviz", "title", "from", "to", "font-size", "csv", "markdown"]);
const FLAGS = new Set(["json", "draw", "reduce", "long", "users-talk", "processes", "markdown"]);

function split(line: string): string[] {
  const words: string[] = [];
  for (const match of line.matchAll(/'([^']*)'|(\S+)/g)) words.push(match[1] ?? match[2]!);
  return words;
}

export function parseCommand(line: string): Command | undefined {
  const [text = "", comment = ""] = line.split(/\s+#\s?/, 2);
  const [program, task = "", ...rest] = split(text);
  if (program !== "quorate") return undefined;
  const plain: string[] = [];
  const words: Word[] = [];
  for (let i = 0; i < rest.length; i++) {
    const one = rest[i]!;
    if (!one.startsWith("--")) {
      plain.push(one);
      continue;
    }
    const name = one.slice(2);
    const value = FLAGS.has(name) || rest[i + 1]?.startsWith("--") ? "" : (rest[++i] ?? "");
    if (!ELSEWHERE.has(name)) words.push([name, value]);
  }
  return { line: text.trim(), comment, task, about: plain.join(" "), words };
}

/** Where a command leads to in the page, if it does. */
export function placeOf(command: Command): Place | undefined {
  const { task, about, words } = command;
  const has = (name: string) => words.some(([known]) => known === name);
  // What a page cannot read, or shows by itself.
  const isList = words.some(([name, text]) => name === "flaw" && text === "list");
  if (isList || words.some(([, text]) => text.startsWith("file:"))) return undefined;
  switch (task) {
    case "sim":
      if (has("runs")) return undefined;
      return { view: "run", about, words };
    case "check":
      return { view: "check", about, words };
    case "quorum": {
      const [kind = "grid", nodes] = about.split(" ");
      if (kind === "compare") return undefined;
      return { view: "quorums", about: kind, words: nodes ? [["nodes", nodes]] : [] };
    }
    case "compare":
      return { view: "compare", about, words: [] };
    default:
      return undefined;
  }
}
