/** `config/*`: what is in force and where it comes from, and changes of the file in force. */
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import type { CodexParams } from "@heddle/dialects/codex-app-server";
import type { Call, Handler } from "../../rpc/call.ts";
import type { ConfigEdit, ConfigLayer, ConfigSource } from "../../host/host.ts";
import type { Reply } from "../../rpc/peer.ts";
import { refuse } from "../thread-facts.ts";
import { readConfig as readChoices } from "./surroundings.ts";

type BatchWrite = CodexParams<"config/batchWrite">;

const MAX_EDITS = 200;

export const readConfig: Handler<"config/read"> = async ({ includeLayers }, call) => {
  // First: it waits for what is being written, which changes what a turn would run with.
  const read = await call.server.host.config?.read();
  const { result } = await readChoices({}, call);
  if (read === undefined) return { result };
  const { config: choices } = result as { readonly config: Readonly<Record<string, unknown>> };
  const { config: inForce, layers } = read;
  // A key that is not configured shows what a turn would run with.
  const config = { ...choices, ...inForce };
  return {
    result: {
      config,
      origins: originsOf(layers),
      layers: includeLayers === true ? layers : null,
    },
  };
};

function originsOf(layers: readonly ConfigLayer[]): Readonly<Record<string, unknown>> {
  const origins = new Map<string, unknown>();
  for (const { name, version, config } of layers.toReversed()) {
    for (const key of keysOf(config)) origins.set(key, { name, version });
  }
  return Object.fromEntries(origins);
}

function keysOf(table: Readonly<Record<string, unknown>>, above = ""): readonly string[] {
  return Object.entries(table).flatMap(([name, value]) => {
    const isTable = typeof value === "object" && value !== null && !Array.isArray(value);
    return isTable ? keysOf(Object.fromEntries(Object.entries(value)), `${above}${name}.`) : [`${above}${name}`];
  });
}

export const writeConfigValue: Handler<"config/value/write"> = (params, call) => {
  return write([params], params, call);
};

export const writeConfigBatch: Handler<"config/batchWrite"> = (params, call) => {
  if (params.edits.length > MAX_EDITS) throw refuse(`config/batchWrite takes at most ${MAX_EDITS} edits`);
  return write(params.edits, params, call);
};

async function write(
  edits: BatchWrite["edits"],
  { filePath, expectedVersion }: Pick<BatchWrite, "filePath" | "expectedVersion">,
  { server }: Call,
): Promise<Reply> {
  const source = requireSource(server.host.config);
  const { file } = source;
  if (typeof filePath === "string" && path.resolve(filePath) !== file) {
    throw failed("configLayerReadonly", "Only writes to the user config are allowed");
  }
  const { version, overruled } = await source.write(edits.map(editFrom), expectedVersion ?? undefined);
  const overriddenMetadata =
    overruled === undefined
      ? null
      : {
          message: `${overruled.key} is overridden by the command line of the server`,
          overridingLayer: { name: overruled.layer.name, version: overruled.layer.version },
          effectiveValue: overruled.value,
        };
  const status = overriddenMetadata === null ? "ok" : "okOverridden";
  return { result: { status, version, filePath: file, overriddenMetadata } };
}

function editFrom({ keyPath, value, mergeStrategy }: BatchWrite["edits"][number]): ConfigEdit {
  return { key: keyOf(keyPath), value: value ?? null, isJoined: mergeStrategy === "upsert" };
}

const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`;
const PART = new RegExp(String.raw`${QUOTED}|[^."]+`, "gs");
const PATH = new RegExp(String.raw`^(?:${QUOTED}|[^."]+)(?:\.(?:${QUOTED}|[^."]+))*$`, "s");

/** `a."b.c".d` → a, b.c, d. What is no path is refused: another key than the one that was meant would be written. */
function keyOf(keyPath: string): readonly string[] {
  if (!PATH.test(keyPath) || keyPath.trim() === "") throw failed("configValidationError", wrongIn(keyPath));
  const parts = keyPath.match(PART) ?? [];
  const key = parts.map((part) => (part.startsWith('"') ? part.slice(1, -1).replaceAll(/\\(.)/gs, "$1") : part));
  if (key.includes("")) throw failed("configValidationError", EMPTY_SEGMENT);
  return key;
}

const EMPTY_SEGMENT = "keyPath segments must not be empty";

/** In the words of the original. */
function wrongIn(keyPath: string): string {
  if (keyPath.trim() === "") return "keyPath must not be empty";
  const closed = keyPath.replaceAll(new RegExp(QUOTED, "gs"), "x");
  if (/(?:^|\.)"(?:[^\\]|\\.)*\\$/s.test(closed)) return "unterminated escape in keyPath";
  if (/(?:^|\.)"/.test(closed)) return "unterminated quoted keyPath segment";
  return /(?:^|\.)(?:\.|$)/.test(closed) ? EMPTY_SEGMENT : "invalid quoted keyPath segment";
}

function requireSource(source: ConfigSource | undefined): ConfigSource {
  if (source === undefined) throw failed("configLayerReadonly", "this server has no configuration of its own to write");
  return source;
}

function failed(code: string, message: string): HeddleError {
  return new HeddleError("config.invalid", message, { details: { config_write_error_code: code } });
}

/** There are no requirements for the owner of this machine. */
export const readConfigRequirements: Handler<"configRequirements/read"> = async () => {
  return { result: { supportsIndependentSpeedModes: null, requirements: null } };
};
