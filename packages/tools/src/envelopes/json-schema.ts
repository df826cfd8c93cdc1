/** JSON Schema of the YAML of an envelope and of a gate, for editors: made from the schemas that read them. */
import { BUILT_IN_ENVELOPE_IDS, HopEdge } from "@heddle/protocol";
import { z } from "zod";
import { GateFile } from "./gates.ts";
import { SpecFile } from "./spec-file.ts";

/** Shown by editors beside the key. */
const MEANING: Readonly<Record<keyof typeof SpecFile.shape, string>> = {
  id: "The name of the file; may be left out",
  description: "What it is for, in one line",
  extends: "The envelope to begin with: keys that are not given here are as there",
  tools: "Exactly those that exist; mcp.* is every configured MCP server, client.* what a client brings",
  effects: "The most that a tool may do here",
  read: "Folders and files that may be read, with system for what programs need; everything that is not masked when absent",
  write:
    'Folders that may be written: below the workspace, absolute, or ~/…; "." is the workspace, "name?" counts where it exists',
  masked: "What does not exist for the agent",
  network: "none, all, or the hosts that are reached",
  sandbox: "Whether a kernel sandbox has to hold",
  approval: "When a user is asked; the stricter of this and the settings counts",
  exits: "The ways out: to which envelope, by whom, on which conditions",
  limits: "From entering to leaving, together with the threads that are started",
  outcome: "JSON Schema of what the envelope is left with",
  manifest: "Files are listed with their hashes when it is entered and left, for heddle verify",
};

export function envelopeSchema(): object {
  return schemaOf(SpecFile, {
    title: "HeddleEnvelope",
    description: "An envelope as a file: HEDDLE_HOME/envelopes/NAME.yaml, or .heddle/envelopes/NAME.yaml of a project",
  });
}

export function gateSchema(): object {
  return schemaOf(GateFile, {
    title: "HeddleGate",
    description: "A gate as a file: HEDDLE_HOME/gates/NAME.yaml, or .heddle/gates/NAME.yaml of a project",
  });
}

function schemaOf(schema: z.ZodObject, words: { readonly title: string; readonly description: string }): object {
  const meaning = new Map<z.core.$ZodType, string>(
    schema === SpecFile ? entriesOf(MEANING).map(([key, text]) => [SpecFile.shape[key], text]) : [],
  );
  const { $schema, ...plain } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      const text = meaning.get(zodSchema);
      if (text !== undefined) jsonSchema["description"] = text;
      if (zodSchema === SpecFile.shape.extends || zodSchema === HopEdge.shape.to)
        jsonSchema["examples"] = [...BUILT_IN_ENVELOPE_IDS];
    },
  });
  return { $schema, ...words, ...plain };
}

function entriesOf<K extends string, V>(record: Readonly<Record<K, V>>): [K, V][] {
  return Object.entries(record) as [K, V][];
}
