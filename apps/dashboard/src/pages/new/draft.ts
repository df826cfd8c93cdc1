/** A task that is being written. It stays in this browser until it is added; the same draft added twice is one task. */
import { keep, readKept } from "../../preferences.ts";

export interface DraftCheck {
  readonly kind: string;
  readonly text: string;
}
export interface Draft {
  readonly id: string;
  readonly mode: "form" | "yaml" | "markdown";
  readonly goal: string;
  readonly name: string;
  readonly workspace: string;
  readonly checks: readonly DraftCheck[];
  readonly time: string;
  readonly turns: string;
  readonly tokens: string;
  readonly costUsd: string;
  readonly sandbox: string;
  readonly network: boolean;
  readonly approval: string;
  readonly apply: string;
  readonly model: string;
  readonly after: string;
  readonly deliver: string;
  readonly protect: string;
  readonly labels: string;
  /** Of the modes that are text; the form writes it anew. */
  readonly text: string;
}

const KEY = "heddle.draft";

export function newDraft(): Draft {
  return {
    id: crypto.randomUUID(),
    mode: "form",
    goal: "",
    name: "",
    workspace: "",
    checks: [],
    time: "",
    turns: "",
    tokens: "",
    costUsd: "",
    sandbox: "workspace-write",
    network: false,
    approval: "never",
    apply: "",
    model: "",
    after: "",
    deliver: "",
    protect: "",
    labels: "",
    text: "",
  };
}

export function readDraft(): Draft {
  return { ...newDraft(), ...readKept<Partial<Draft>>(KEY) };
}

export function keepDraft(draft: Draft): void {
  keep(KEY, draft);
}

/** Kinds that are one line each; what needs more is written as YAML. */
export const CHECK_KINDS: Readonly<Record<string, string>> = {
  command: "a command that ends with 0: npm run lint",
  tests: "a test run that is counted: node --test",
  changed: "globs that must change: src/**",
  unchanged: "globs that must stay: test/**",
  "file-exists": "a file that is there: NOTES.md",
  contains: "path: text that is in it",
};

const DEFAULTS = newDraft();

/** The spec as a file would have it; what is at its default is left out. */
export function specOf(draft: Draft): Readonly<Record<string, unknown>> {
  const list = (text: string): readonly string[] =>
    text
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean);
  const budget = {
    ...(draft.time === "" ? {} : { time: draft.time }),
    ...(draft.turns === "" ? {} : { turns: Number(draft.turns) }),
    ...(draft.tokens === "" ? {} : { tokens: Number(draft.tokens.replaceAll(/[,_ ]/g, "")) }),
    ...(draft.costUsd === "" ? {} : { cost_usd: Number(draft.costUsd.replace("$", "")) }),
  };
  return {
    ...(draft.name === "" ? {} : { name: draft.name }),
    ...(draft.workspace === "" ? {} : { workspace: draft.workspace }),
    goal: draft.goal,
    ...(draft.checks.length === 0
      ? {}
      : { checks: draft.checks.filter(({ text }) => text.trim() !== "").map(checkOf) }),
    ...(list(draft.deliver).length === 0 ? {} : { deliver: list(draft.deliver) }),
    ...(list(draft.protect).length === 0 ? {} : { protect: list(draft.protect) }),
    ...(draft.sandbox === DEFAULTS.sandbox ? {} : { sandbox: draft.sandbox }),
    ...(draft.network ? { network: true } : {}),
    ...(draft.approval === DEFAULTS.approval ? {} : { approval: draft.approval }),
    ...(draft.apply === "" ? {} : { apply: draft.apply }),
    ...(draft.model === "" ? {} : { model: draft.model }),
    ...(list(draft.after).length === 0 ? {} : { depends_on: list(draft.after) }),
    ...(list(draft.labels).length === 0 ? {} : { labels: list(draft.labels) }),
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
  };
}

function checkOf({ kind, text }: DraftCheck): Readonly<Record<string, unknown>> {
  const value = text.trim();
  if (kind === "changed" || kind === "unchanged") return { [kind]: value.split(/[,\s]+/) };
  if (kind === "contains") {
    const [path = "", ...rest] = value.split(":");
    return { contains: { path: path.trim(), text: rest.join(":").trim() } };
  }
  return { [kind]: value };
}

/** YAML that any reader takes: texts are written as JSON where they are not plain words. */
export function asYaml(value: Readonly<Record<string, unknown>>): string {
  return Object.entries(value)
    .map(([key, one]) => field(key, one, ""))
    .join("");
}

function field(key: string, value: unknown, indent: string): string {
  if (Array.isArray(value)) {
    const entries = value.map((one) => (isRecord(one) ? dashed(one, indent) : `${indent}  - ${scalar(one)}\n`));
    return `${indent}${key}:\n${entries.join("")}`;
  }
  if (isRecord(value))
    return `${indent}${key}:\n${Object.entries(value)
      .map(([name, one]) => field(name, one, `${indent}  `))
      .join("")}`;
  if (typeof value === "string" && value.includes("\n"))
    return `${indent}${key}: |-\n${value.replaceAll(/^/gm, `${indent}  `)}\n`;
  return `${indent}${key}: ${scalar(value)}\n`;
}

function dashed(value: Readonly<Record<string, unknown>>, indent: string): string {
  const text = Object.entries(value)
    .map(([name, one]) => field(name, one, `${indent}    `))
    .join("");
  return `${indent}  - ${text.trimStart()}`;
}

const PLAIN = /^[A-Za-z/][\w ./-]*$/;
const RESERVED = /^(?:true|false|null|yes|no|on|off|~)$/i;

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  return PLAIN.test(value) && !RESERVED.test(value) && value === value.trim() ? value : JSON.stringify(value);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
