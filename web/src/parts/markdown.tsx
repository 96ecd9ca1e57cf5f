// The few forms of Markdown that the headers of algorithms and the lectures use.

import type { ComponentChildren, JSX } from "preact";

export interface Forms {
  /** A block of commands; nothing to show it as it is. */
  commands?: (lines: string[]) => ComponentChildren | undefined;
  /** Where a link leads to; nothing if nowhere here. */
  link?: (target: string) => string | undefined;
  image?: (target: string, alt: string) => ComponentChildren;
  /** The level of the first heading. */
  level?: number;
}

export function Markdown({ text, forms = {} }: { text: string; forms?: Forms }) {
  return <div class="prose">{blocks(text.split("\n"), forms)}</div>;
}

function blocks(lines: string[], forms: Forms): JSX.Element[] {
  const out: JSX.Element[] = [];
  let i = 0;
  const push = (element: JSX.Element) => out.push(<div key={out.length}>{element}</div>);
  while (i < lines.length) {
    const line = lines[i]!;
    if (line.trim() === "") {
      i++;
      continue;
    }
    const fence = line.match(/^```(\w*)/);
    if (fence) {
      const body: string[] = [];
      for (i++; i < lines.length && !lines[i]!.startsWith("```"); i++) body.push(lines[i]!);
      i++;
      const commands = fence[1] === "sh" ? forms.commands?.(body) : undefined;
      push(
        commands ? (
          <>{commands}</>
        ) : (
          <pre tabIndex={0}>
            <code>{body.join("\n")}</code>
          </pre>
        ),
      );
      continue;
    }
    const heading = line.match(/^(#{1,5}) (.*)/);
    if (heading) {
      const level = Math.min(6, heading[1]!.length + (forms.level ?? 1) - 1);
      const Tag = `h${level}` as "h2";
      push(<Tag>{inline(heading[2]!, forms)}</Tag>);
      i++;
      continue;
    }
    if (/^(---|\*\*\*)\s*$/.test(line)) {
      push(<hr />);
      i++;
      continue;
    }
    if (line.startsWith("|")) {
      const rows: string[] = [];
      for (; i < lines.length && lines[i]!.startsWith("|"); i++) rows.push(lines[i]!);
      push(table(rows, forms));
      continue;
    }
    if (/^(- |\d+\. )/.test(line)) {
      const ordered = /^\d/.test(line);
      const items: string[] = [];
      for (; i < lines.length && lines[i]!.trim() !== ""; i++) {
        if (/^(- |\d+\. )/.test(lines[i]!)) items.push(lines[i]!.replace(/^(- |\d+\. )/, ""));
        else items[items.length - 1] += ` ${lines[i]!.trim()}`;
      }
      const list = items.map((item) => <li key={item}>{inline(item, forms)}</li>);
      push(ordered ? <ol>{list}</ol> : <ul>{list}</ul>);
      continue;
    }
    const paragraph: string[] = [];
    for (; i < lines.length && lines[i]!.trim() !== "" && !/^(```|#|\||- )/.test(lines[i]!); i++) {
      paragraph.push(lines[i]!);
    }
    if (paragraph.length === 0) paragraph.push(lines[i++]!);
    const text = paragraph.join(" ");
    const image = text.match(/^!\[([^\]]*)\]\(([^)]*)\)$/);
    if (image) {
      const shown = forms.image?.(image[2]!, image[1]!);
      if (shown) push(<>{shown}</>);
      continue;
    }
    push(<p>{inline(text, forms)}</p>);
  }
  return out;
}

function table(rows: string[], forms: Forms): JSX.Element {
  const cells = rows.map((row) =>
    row
      .replace(/^\||\|\s*$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|")),
  );
  const [header = [], , ...body] = cells;
  const titled = header.some((cell) => cell !== "");
  return (
    <div class="table-scroll" tabIndex={0}>
      <table>
        {titled && (
          <thead>
            <tr>
              {header.map((cell) => (
                <th key={cell} scope="col">
                  {inline(cell, forms)}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {body.map((row) => (
            <tr key={row.join("|")}>
              {row.map((cell, i) => (
                <td key={i}>{inline(cell, forms)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const INLINE = /(`[^`]+`)|(\*\*[^*]+\*\*)|(\*[^*\s][^*]*\*)|(\[[^\]]+\]\([^)]+\))/g;

export function inline(text: string, forms: Forms = {}): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let last = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > last) out.push(text.slice(last, match.index));
    const [whole, code, strong, emphasis, link] = match;
    if (code) out.push(<code>{code.slice(1, -1)}</code>);
    else if (strong) out.push(<strong>{inline(strong.slice(2, -2), forms)}</strong>);
    else if (emphasis) out.push(<em>{inline(emphasis.slice(1, -1), forms)}</em>);
    else if (link) {
      const parts = link.match(/^\[([^\]]+)\]\(([^)]+)\)$/)!;
      const target = forms.link?.(parts[2]!);
      out.push(target ? <a href={target}>{inline(parts[1]!, forms)}</a> : <>{inline(parts[1]!, forms)}</>);
    }
    last = match.index + whole.length;
  }
  if (last < text.length) out.push(text.slice(last));
  return out;
}
