/**
 * The schema that Codex generates for its clients, and whether messages fit it. Every answer is held to the type of its
 * method, every notification and question to its own. It is made once into results/, which git does not keep.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { codex } from "../program.ts";
import type { Message } from "./client.ts";
import { wordOf } from "./compare.ts";
import { paramNames, type Definitions, type Schema } from "./param-names.ts";
import type { Received } from "./play.ts";
import type { RecordedMethods } from "./recorded.ts";

const FOLDER = path.join(import.meta.dirname, "..", "results", "schema-0.166");
const STABLE_FOLDER = `${FOLDER}-stable`;
/** Left from an older protocol; its schema is not generated. */
const UNDESCRIBED = ["answer getAuthStatus"];
/** Methods whose params do not name the type of the answer. */
const NAMES: Readonly<Record<string, string>> = {
  "account/rateLimits/read": "GetAccountRateLimitsResponse",
  "config/batchWrite": "ConfigWriteResponse",
  "config/value/write": "ConfigWriteResponse",
  "account/usage/read": "GetAccountTokenUsageResponse",
  "configRequirements/read": "ConfigRequirementsReadResponse",
};

/** As much of Ajv as is needed. It is installed with Codex, and types of what may not be there cannot be imported. */
interface Validator {
  compile(schema: object): Check;
  errorsText(errors: unknown, options: { readonly separator: string }): string;
}

type Check = ((value: unknown) => boolean) & { readonly errors?: unknown };

function openValidator(): Validator {
  const { Ajv }: { Ajv: new (options: object) => Validator } = createRequire(import.meta.url)("ajv");
  return new Ajv({ strict: false, validateFormats: false, allErrors: true });
}

interface Branch {
  readonly properties: {
    readonly method: { readonly enum: readonly string[] };
    readonly params?: Schema;
  };
}

interface Union {
  readonly oneOf: readonly Branch[];
  readonly definitions: Definitions;
}

export interface Misfit {
  readonly message: string;
  readonly problem: string;
}

export class MessageSchema {
  readonly #ajv = openValidator();
  readonly #checks = new Map<string, Check>();
  readonly #notifications = readUnion("ServerNotification");
  readonly #questions = readUnion("ServerRequest");
  readonly #calls = readUnion("ClientRequest");
  /** Words of messages that were checked. */
  readonly checked = new Map<string, number>();

  static generate(): MessageSchema {
    generateInto(FOLDER, ["--experimental"]);
    return new MessageSchema();
  }

  misfits(received: readonly Received[]): readonly Misfit[] {
    return received.flatMap(({ messages }) => messages.flatMap((message) => this.#misfit(message)));
  }

  #misfit(message: Message): readonly Misfit[] {
    const word = wordOf(message);
    if ("missed" in message || UNDESCRIBED.includes(word)) return [];
    const [check, value] = this.#checkFor(message);
    if (check === undefined) return [{ message: word, problem: "the schema has no such message" }];
    this.checked.set(word, (this.checked.get(word) ?? 0) + 1);
    if (check(value)) return [];
    return [{ message: word, problem: this.#ajv.errorsText(check.errors, { separator: "; " }).slice(0, 400) }];
  }

  #checkFor(message: Message): readonly [Check | undefined, unknown] {
    const { method, answerTo, error, result } = message;
    if (typeof method === "string") {
      const union = "id" in message ? this.#questions : this.#notifications;
      return [this.#branch(union, method), message];
    }
    if (error !== undefined) return [this.#file("JSONRPCErrorError"), error];
    return [this.#answer(String(answerTo)), result];
  }

  #branch(union: Union, method: string): Check | undefined {
    const branch = union.oneOf.find(({ properties }) => properties.method.enum.includes(method));
    if (branch === undefined) return undefined;
    return this.#compiled(method, () => ({ ...branch, definitions: union.definitions }));
  }

  #answer(method: string): Check | undefined {
    const branch = this.#calls.oneOf.find(({ properties }) => properties.method.enum.includes(method));
    const params = branch?.properties.params?.$ref?.split("/").at(-1);
    const name = NAMES[method] ?? params?.replace(/Params$/, "Response");
    return name === undefined ? undefined : this.#file(name);
  }

  #file(name: string): Check | undefined {
    const file = ["", "v2", "v1"]
      .map((folder) => path.join(FOLDER, folder, `${name}.json`))
      .find((candidate) => existsSync(candidate));
    return file === undefined ? undefined : this.#compiled(file, () => JSON.parse(readFileSync(file, "utf8")));
  }

  #compiled(name: string, read: () => object): Check {
    const known = this.#checks.get(name) ?? this.#ajv.compile(read());
    this.#checks.set(name, known);
    return known;
  }
}

/**
 * Methods of calls that the schema describes, in its order, with the names of their params: for every client, and what
 * those with `experimentalApi` have besides.
 */
export function describedMethods(): Omit<RecordedMethods, "codex"> {
  generateInto(FOLDER, ["--experimental"]);
  generateInto(STABLE_FOLDER, []);
  const stable = methodsOf(readUnion("ClientRequest", STABLE_FOLDER));
  const besides = [...methodsOf(readUnion("ClientRequest"))].flatMap(([method, names]) => {
    const known = stable.get(method);
    const more = names.filter((name) => known?.includes(name) !== true);
    return known !== undefined && more.length === 0 ? [] : [[method, more] as const];
  });
  return {
    stable: Object.fromEntries(stable),
    experimental: Object.fromEntries(besides.filter(([method]) => !stable.has(method))),
    experimentalParams: Object.fromEntries(besides.filter(([method]) => stable.has(method))),
  };
}

function methodsOf({ oneOf, definitions }: Union): ReadonlyMap<string, readonly string[]> {
  return new Map(
    oneOf.map(({ properties: { method, params = {} } }) => [method.enum[0] ?? "", paramNames(params, definitions)]),
  );
}

function generateInto(folder: string, options: readonly string[]): void {
  if (existsSync(path.join(folder, "ServerNotification.json"))) return;
  mkdirSync(folder, { recursive: true });
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder, CODEX_HOME: folder };
  execFileSync(codex().file, ["app-server", "generate-json-schema", ...options, "--out", folder], { env });
}

function readUnion(name: string, folder = FOLDER): Union {
  return JSON.parse(readFileSync(path.join(folder, `${name}.json`), "utf8"));
}
