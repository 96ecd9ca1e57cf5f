// What views of an algorithm have in common beside their pictures: its name, fields for what can be given to
// it, and what was refused.

import type { Algorithm, Argument } from "../model/catalogue";
import { command, type Word, word } from "../model/link";
import type { Session } from "../model/session";
import { t } from "../texts";
import { finder } from "./finder";
import { Icon } from "./icons";
import { Copy, Field, Fold, Select, Text } from "./ui";

/** What is set, where it is set, and what is wrong with it. */
export interface Given {
  words: Word[];
  set: (name: string, text: string | undefined) => void;
  error: (name: string) => string | undefined;
}

/** Which algorithm it is; another one is found by a click. */
export function AlgorithmTitle({ name }: { name: string }) {
  return (
    <h1>
      <button type="button" class="title-button" title={t.run.change} onClick={() => (finder.value = true)}>
        {name.split("/")[1]}
        <Icon name="down" size={18} />
      </button>
    </h1>
  );
}

/** Why nothing new is shown. */
export function Refusal({ session }: { session: Session }) {
  const refused = session.refused.value;
  if (!refused) return null;
  return (
    <p class="refused" role="alert">
      {refused.argument && <strong>{refused.argument}: </strong>}
      {refused.reason}
    </p>
  );
}

/** What the session has refused of an argument. */
export function errorsOf(session: Session): (name: string) => string | undefined {
  const wrong = session.refused.value;
  return (name) => (wrong?.argument === name ? wrong.reason : undefined);
}

/** Do links keep the order? */
export function ChannelsField({ words, set, error }: Given) {
  return (
    <Field label={t.check.channels} error={error("channels")}>
      {(id) => (
        <Select
          id={id}
          value={word(words, "channels") ?? ""}
          options={[
            ["", t.check.usual],
            ["fifo", t.check.fifo],
            ["unordered", t.check.unordered],
          ]}
          onChange={(value) => set("channels", value)}
        />
      )}
    </Field>
  );
}

/** What only this algorithm can be told. */
export function OptionFields({ about, words, set, error }: Given & { about: Algorithm }) {
  return (
    <>
      {about.options.map((option) => (
        <OptionField
          key={option.name}
          option={option}
          value={word(words, option.name)}
          error={error(option.name)}
          onChange={(value) => set(option.name, value)}
        />
      ))}
    </>
  );
}

/** The same on the command line. */
export function CommandFold({ task, name, words }: { task: string; name: string; words: Word[] }) {
  const text = command(task, name, words);
  return (
    <Fold title={t.run.command}>
      <pre class="command" tabIndex={0}>
        <code>{text}</code>
      </pre>
      <Copy text={text} />
    </Fold>
  );
}

const quorumKinds = ["projective-plane", "majority", "tree", "all", "singleton"];

const CHOICES: Record<string, [string, string][]> = {
  load: Object.entries(t.run.loads).sort(([a], [b]) => Number(b === "") - Number(a === "")),
  initiators: Object.entries(t.run.initiators).sort(([a], [b]) => Number(b === "") - Number(a === "")),
  ids: Object.entries(t.run.idOrders),
  criterion: Object.entries(t.run.criteria),
  quorum: [
    ["", t.quorums.names["grid"]!],
    ...quorumKinds.map((kind): [string, string] => [kind, t.quorums.names[kind]!]),
  ],
};

/** The choices, with the one that was typed if it is none of them. */
export function withOwn(options: [string, string][], value: string | undefined): [string, string][] {
  if (value === undefined || options.some(([known]) => known === value)) return options;
  const short = value.length > 28 ? `${value.slice(0, 26)}…` : value;
  return [...options, [value, short]];
}

export function ArgumentField(props: {
  argument: Argument;
  value: string | undefined;
  error?: string;
  onChange: (value: string) => void;
}) {
  const { argument } = props;
  const choices = CHOICES[argument.name];
  const usual = argument.help.match(/\[default: ([^;\]]+)/)?.[1];
  return (
    <Field
      label={t.run.arguments[argument.name] ?? argument.name.replaceAll("-", " ")}
      help={argument.help}
      error={props.error}
    >
      {(id) =>
        choices ? (
          <Select
            id={id}
            value={props.value ?? ""}
            options={withOwn(choices, props.value)}
            onChange={props.onChange}
          />
        ) : (
          <Text
            id={id}
            value={props.value ?? ""}
            placeholder={usual ?? argument.value ?? ""}
            onChange={props.onChange}
          />
        )
      }
    </Field>
  );
}

function OptionField(props: {
  option: { name: string; values: string; default: string; help: string };
  value: string | undefined;
  error?: string;
  onChange: (value: string) => void;
}) {
  const { option } = props;
  const isChoice = /^[a-z0-9-]+(\|[a-z0-9-]+)+$/.test(option.values);
  return (
    <Field label={option.name.replaceAll("-", " ")} help={option.help} error={props.error}>
      {(id) =>
        isChoice ? (
          <Select
            id={id}
            value={props.value ?? option.default}
            options={option.values.split("|").map((value) => [value, value])}
            onChange={(value) => props.onChange(value === option.default ? "" : value)}
          />
        ) : (
          <Text id={id} value={props.value ?? ""} placeholder={option.default} onChange={props.onChange} />
        )
      }
    </Field>
  );
}
