// States as the engines show them: text as Rust writes values, read into a tree that can be laid out.

export type Value =
  | { kind: "atom"; text: string }
  | { kind: "list"; open: string; items: Value[] }
  | { kind: "map"; entries: [Value, Value][] }
  | { kind: "tuple"; name: string; items: Value[] }
  | { kind: "struct"; name: string; fields: [string, Value][] };

const DEPTH_MAX = 60;

class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  read(): Value {
    return this.value(0) ?? { kind: "atom", text: this.text };
  }

  private skip(): void {
    while (this.text[this.at] === " " || this.text[this.at] === "\n") this.at++;
  }

  private value(depth: number): Value | undefined {
    if (depth > DEPTH_MAX) return undefined;
    this.skip();
    const c = this.text[this.at];
    if (c === "[" || c === "{") return this.list(c, depth);
    if (c === '"') return this.quoted();
    const start = this.at;
    while (this.at < this.text.length && /[\w:]/.test(this.text[this.at]!) && !this.isField()) this.at++;
    const name = this.text.slice(start, this.at);
    if (this.text[this.at] === "(") return this.tuple(name, depth);
    if (this.text.startsWith(" { ", this.at) && name !== "") return this.struct(name, depth);
    while (this.at < this.text.length && !",)]}".includes(this.text[this.at]!) && !this.isField()) this.at++;
    return { kind: "atom", text: this.text.slice(start, this.at).trim() };
  }

  /** A colon with a space behind it ends a key. */
  private isField(): boolean {
    return this.text[this.at] === ":" && this.text[this.at + 1] === " ";
  }

  private comma(): void {
    this.skip();
    if (this.text[this.at] === ",") this.at++;
    this.skip();
  }

  private list(open: string, depth: number): Value | undefined {
    const close = open === "[" ? "]" : "}";
    this.at++;
    const items: Value[] = [];
    const entries: [Value, Value][] = [];
    for (;;) {
      this.skip();
      if (this.at >= this.text.length) return undefined;
      if (this.text[this.at] === close) break;
      const key = this.value(depth + 1);
      if (!key) return undefined;
      if (this.isField()) {
        this.at += 2;
        const value = this.value(depth + 1);
        if (!value) return undefined;
        entries.push([key, value]);
      } else {
        items.push(key);
      }
      this.comma();
    }
    this.at++;
    return entries.length > 0 ? { kind: "map", entries } : { kind: "list", open, items };
  }

  private tuple(name: string, depth: number): Value | undefined {
    this.at++;
    const items: Value[] = [];
    for (;;) {
      this.skip();
      if (this.at >= this.text.length) return undefined;
      if (this.text[this.at] === ")") break;
      const item = this.value(depth + 1);
      if (!item) return undefined;
      items.push(item);
      this.comma();
    }
    this.at++;
    return { kind: "tuple", name, items };
  }

  private struct(name: string, depth: number): Value | undefined {
    this.at += 3;
    const fields: [string, Value][] = [];
    for (;;) {
      this.skip();
      if (this.at >= this.text.length) return undefined;
      if (this.text[this.at] === "}") break;
      const colon = this.text.indexOf(": ", this.at);
      if (colon < 0) return undefined;
      const field = this.text.slice(this.at, colon);
      this.at = colon + 2;
      const value = this.value(depth + 1);
      if (!value) return undefined;
      fields.push([field, value]);
      this.comma();
    }
    this.at++;
    return { kind: "struct", name, fields };
  }

  private quoted(): Value {
    const start = this.at++;
    while (this.at < this.text.length && this.text[this.at] !== '"') this.at += this.text[this.at] === "\\" ? 2 : 1;
    this.at++;
    return { kind: "atom", text: this.text.slice(start, this.at) };
  }
}

export function parse(text: string): Value {
  return new Reader(text).read();
}

/** The value without the names around it that say only which of several it is. */
export function inner(value: Value): Value {
  let now = value;
  while (now.kind === "tuple" && now.items.length === 1 && now.items[0]!.kind !== "atom") now = now.items[0]!;
  return now;
}

/** A value on one line, as short as it can be read. */
export function brief(value: Value, items = 12): string {
  switch (value.kind) {
    case "atom":
      return value.text;
    case "list": {
      const shown = value.items.slice(0, items).map((item) => brief(item, 6));
      if (value.items.length > items) shown.push("…");
      const [open, close] = value.open === "[" ? ["[", "]"] : ["{", "}"];
      return value.items.length === 0 ? "∅" : `${open}${shown.join(", ")}${close}`;
    }
    case "map": {
      const shown = value.entries.slice(0, items).map(([key, one]) => `${brief(key, 6)}: ${brief(one, 6)}`);
      if (value.entries.length > items) shown.push("…");
      return `{${shown.join(", ")}}`;
    }
    case "tuple": {
      const inside = value.items.map((item) => brief(item, 6)).join(", ");
      const bare = value.name === "Some" || value.name === "";
      const only = value.items.length === 1 ? value.items[0] : undefined;
      // Names that say no more than what is inside.
      if (only && (bare || only.kind === "list" || only.kind === "map" || PLAIN.test(value.name))) return inside;
      if (bare) return `(${inside})`;
      return `${words(value.name)}(${inside})`;
    }
    case "struct": {
      const inside = value.fields.map(([name, one]) => `${words(name)} ${brief(one, 6)}`).join(", ");
      return inside === "" ? words(value.name) : `${inside}`;
    }
  }
}

const PLAIN = /(Clock|Id|Rank|Stamp|Time|Span|Life|Seq|Number)$/;

/** `outstanding_replies` and `OutstandingReplies` as people write them. */
export function words(name: string): string {
  return name
    .replaceAll("_", " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();
}

export interface Row {
  name: string;
  text: string;
  path: string;
}

const PHASES = /^(phase|mode|stage|role|part)$/;

/** The fields of a state as rows; what is inside of a field stands behind its name. */
export function rows(value: Value, prefix = "", depth = 0): Row[] {
  const all: Row[] = [];
  const core = inner(value);
  if (core.kind !== "struct") return [{ name: prefix || "state", text: brief(core), path: prefix }];
  for (const [name, field] of core.fields) {
    const path = prefix ? `${prefix}.${name}` : name;
    const one = inner(field);
    if (one.kind === "struct" && one.fields.length > 1 && depth < 2 && brief(one).length > 30) {
      all.push(...rows(one, path, depth + 1));
      continue;
    }
    const text = PHASES.test(name) ? phase(field) : brief(field);
    all.push({ name: words(path.replaceAll(".", " · ")), text, path });
  }
  return all;
}

/** A phase begins with its name: that is what one looks for. */
function phase(value: Value): string {
  if (value.kind === "tuple") {
    const inside = value.items.map((item) => brief(item)).join(", ");
    return inside === "" || inside === "()" ? words(value.name) : `${words(value.name)}: ${inside}`;
  }
  if (value.kind === "struct") return `${words(value.name)}: ${brief(value)}`;
  return value.kind === "atom" ? words(value.text) : brief(value);
}

/** What the paper calls fields: the table under `# State` of an explanation, by field. */
export function paperNames(explanation: string): Map<string, string> {
  const names = new Map<string, string>();
  const section = explanation.split(/^# State$/m)[1]?.split(/^# /m)[0] ?? "";
  for (const line of section.split("\n")) {
    const cells = line.split("|").map((cell) => cell.trim());
    if (cells.length < 4) continue;
    for (const field of cells[1]!.matchAll(/`([^`]+)`/g)) names.set(field[1]!, cells[2]!);
  }
  return names;
}
