/**
 * Where in a document, in the small grammar of checks:
 *
 *   path  = step *( "." key | index )        a.b[0]["odd key"].c
 *   step  = key | index
 *   key   = letters, digits, "_", "-", "$"
 *   index = "[" digits "]" | "[" a JSON string "]"
 *
 * Nothing else: no wildcards, no filters, no negative numbers. An empty path is the whole document.
 */
import { HeddleError } from "@heddle/protocol";

type Step = { readonly key: string } | { readonly index: number };

export type Found = { readonly isThere: true; readonly value: unknown } | { readonly isThere: false };

const KEY = /^[\p{L}\p{N}_$-]+/u;
const INDEX = /^\[(\d{1,9})\]/;
const QUOTED = /^\[("(?:[^"\\]|\\.)*")\]/;

/** Keys are looked up in objects, numbers in lists; anywhere else there is nothing. */
export function lookUp(document: unknown, path: string | undefined): Found {
  let value = document;
  for (const step of parsePath(path ?? "")) {
    if ("index" in step) {
      if (!Array.isArray(value) || step.index >= value.length) return { isThere: false };
      value = value[step.index];
    } else {
      if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, step.key)) {
        return { isThere: false };
      }
      value = (value as Readonly<Record<string, unknown>>)[step.key];
    }
  }
  return { isThere: true, value };
}

export function parsePath(path: string): readonly Step[] {
  const steps: Step[] = [];
  let rest = path;
  while (rest !== "") {
    if (steps.length > 0 && rest.startsWith(".") && KEY.test(rest.slice(1))) rest = rest.slice(1);
    else if (steps.length > 0 && !rest.startsWith("[")) throw refuse(path, path.length - rest.length);
    const key = KEY.exec(rest)?.[0];
    const index = INDEX.exec(rest);
    const quoted = QUOTED.exec(rest);
    if (key !== undefined) steps.push({ key });
    else if (index?.[1] !== undefined) steps.push({ index: Number(index[1]) });
    else if (quoted?.[1] !== undefined) steps.push({ key: unquote(path, quoted[1]) });
    else throw refuse(path, path.length - rest.length);
    rest = rest.slice((key ?? index?.[0] ?? quoted?.[0] ?? "").length);
  }
  return steps;
}

function unquote(path: string, text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    throw refuse(path, path.indexOf(text));
  }
}

function refuse(path: string, at: number): HeddleError {
  return new HeddleError(
    "usage.invalid",
    `${JSON.stringify(path)} is not a path in a document: cannot be read from character ${at + 1} on; write it like a.b[0]["odd key"]`,
  );
}
