// The small things that views are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../texts";
import { Icon } from "./icons";

export function IconButton(props: {
  icon: string;
  label: string;
  onClick: () => void;
  disabled?: boolean;
  pressed?: boolean;
  big?: boolean;
}) {
  return (
    <button
      type="button"
      class={`icon-button${props.big ? " big" : ""}`}
      aria-label={props.label}
      title={props.label}
      disabled={props.disabled}
      aria-pressed={props.pressed}
      onClick={props.onClick}
    >
      <Icon name={props.icon} size={props.big ? 24 : 20} />
    </button>
  );
}

export function Field(props: {
  label: string;
  error?: string;
  help?: string;
  children: (id: string) => ComponentChildren;
  inline?: boolean;
}) {
  const id = useId();
  return (
    <div class={`field${props.inline ? " inline" : ""}${props.error ? " wrong" : ""}`} title={props.help}>
      <label for={id}>{props.label}</label>
      {props.children(id)}
      {props.error && (
        <p class="error" role="alert">
          {props.error}
        </p>
      )}
    </div>
  );
}

export function Select(props: {
  id?: string;
  value: string;
  options: [value: string, label: string][];
  onChange: (value: string) => void;
  label?: string;
}) {
  return (
    <span class="select">
      <select
        id={props.id}
        aria-label={props.label}
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        {props.options.map(([value, label]) => (
          <option value={value} key={value}>
            {label}
          </option>
        ))}
      </select>
      <Icon name="down" size={14} />
    </span>
  );
}

/** A text that counts when one is done with it. */
export function Text(props: {
  id?: string;
  value: string;
  placeholder?: string;
  onChange: (value: string) => void;
  numeric?: boolean;
  label?: string;
}) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = props.value;
  }, [props.value]);
  const done = () => {
    if (input.current && input.current.value.trim() !== props.value) props.onChange(input.current.value.trim());
  };
  return (
    <input
      ref={input}
      id={props.id}
      type="text"
      inputMode={props.numeric ? "decimal" : "text"}
      aria-label={props.label}
      autocomplete="off"
      spellcheck={false}
      defaultValue={props.value}
      placeholder={props.placeholder}
      onBlur={done}
      onKeyDown={(event) => {
        if (event.key === "Enter") done();
      }}
    />
  );
}

export function Slider(props: {
  id?: string;
  value: number;
  min: number;
  max: number;
  step?: number;
  onChange: (value: number) => void;
  label?: string;
  show?: (value: number) => string;
}) {
  const part = ((props.value - props.min) / (props.max - props.min)) * 100;
  return (
    <span class="slider">
      <input
        id={props.id}
        type="range"
        aria-label={props.label}
        min={props.min}
        max={props.max}
        step={props.step ?? 1}
        value={props.value}
        style={{ "--part": `${Math.max(0, Math.min(100, part))}%` }}
        onInput={(event) => props.onChange(Number(event.currentTarget.value))}
      />
      <output>{props.show ? props.show(props.value) : props.value}</output>
    </span>
  );
}

export function Segments<T extends string>(props: {
  value: T;
  options: [value: T, label: string][];
  onChange: (value: T) => void;
  label: string;
}) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.options.map(([value, label]) => (
        <button
          type="button"
          key={value}
          aria-pressed={value === props.value}
          onClick={() => props.onChange(value)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

export function Fold(props: { title: string; open?: boolean; children: ComponentChildren; count?: number }) {
  return (
    <details class="fold" open={props.open}>
      <summary>
        <span>{props.title}</span>
        {props.count !== undefined && props.count > 0 && <span class="count">{props.count}</span>}
        <Icon name="down" size={14} />
      </summary>
      <div class="fold-body">{props.children}</div>
    </details>
  );
}

/** Something over the page, until it is closed. */
export function Dialog(props: {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before anything else happens, so that the next key is already the dialog's.
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!element) return;
    if (props.open && !element.open) element.showModal();
    if (!props.open && element.open) element.close();
  }, [props.open]);
  return (
    <dialog
      ref={dialog}
      class={props.class}
      aria-label={props.title}
      onClose={props.onClose}
      onClick={(event) => {
        if (event.target === dialog.current) props.onClose();
      }}
    >
      {props.open && props.children}
    </dialog>
  );
}

/** A button that opens a list of things to do. */
export function Menu(props: {
  icon: string;
  label: string;
  items: [label: string, act: () => void][];
}) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const away = (event: Event) => {
      if (details.current?.open && !details.current.contains(event.target as Node)) {
        details.current.open = false;
      }
    };
    addEventListener("pointerdown", away);
    return () => removeEventListener("pointerdown", away);
  }, []);
  return (
    <details class="menu" ref={details}>
      <summary class="icon-button" role="button" aria-label={props.label} title={props.label}>
        <Icon name={props.icon} />
      </summary>
      <div class="menu-list">
        {props.items.map(([label, act]) => (
          <button
            type="button"
            key={label}
            onClick={() => {
              if (details.current) details.current.open = false;
              act();
            }}
          >
            {label}
          </button>
        ))}
      </div>
    </details>
  );
}

export function Copy(props: { text: string; label?: string }) {
  const button = useRef<HTMLButtonElement>(null);
  return (
    <button
      type="button"
      class="link-button"
      ref={button}
      onClick={() => {
        void navigator.clipboard?.writeText(props.text).then(() => {
          if (button.current) button.current.textContent = t.run.copied;
          setTimeout(() => {
            if (button.current) button.current.textContent = props.label ?? t.run.copy;
          }, 1500);
        });
      }}
    >
      {props.label ?? t.run.copy}
    </button>
  );
}

/** Saves a text or a picture as a file. */
export function save(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Saves a drawing as pixels, twice as fine as it is large. */
export async function savePng(name: string, svg: string): Promise<void> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    // What is too large for a picture is made smaller.
    const ratio = Math.min(2, 12_000 / Math.max(1, image.naturalWidth));
    canvas.width = Math.max(1, image.naturalWidth * ratio);
    canvas.height = Math.max(1, image.naturalHeight * ratio);
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (blob) save(name, blob, "image/png");
  } finally {
    URL.revokeObjectURL(url);
  }
}
