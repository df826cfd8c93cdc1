/** Verifies a bundle without the store it came from: levels 1 to 4, the whole outputs it carries, and who signed it. */
import { readFileSync, statSync } from "node:fs";
import { verifyExport, type ExportReport } from "@heddle/journal";
import {
  finding,
  nothingExamined,
  recordFindings,
  recordLevels,
  replayLevels,
  resultOf,
  type Finding,
  type Level,
  type LevelExamined,
} from "@heddle/journal/verification";
import { counted, HeddleError, toHeddleError } from "@heddle/protocol";
import { cannot } from "@heddle/tasks/verification";
import type { Verdict } from "./verdict.ts";

/** A bundle holds no files but whole outputs. */
const HIGHEST = 4;
const OUTPUTS = 5;
const MAX_KEY_BYTES = 64 * 1024;

export interface BundleQuestion {
  /** An id of a key, or a file with a public key. */
  readonly key: string | undefined;
  readonly level: Level | undefined;
}

export async function judgeBundle(
  lines: AsyncIterable<string>,
  { key, level: asked }: BundleQuestion,
): Promise<Verdict> {
  try {
    const known = key === undefined ? undefined : publicKeyIn(key);
    const { replay, blobFindings, ...report } = await verifyExport(
      lines,
      known === undefined ? {} : { publicKey: known },
    );
    if (report.thread === undefined) {
      const found = recordFindings({ ...report, missing: [], notices: [] });
      const why = "this is not a bundle of heddle evidence export or heddle threads export";
      return { ...cannot(why), report, findings: found };
    }
    const highest = report.blobs > 0 ? OUTPUTS : HIGHEST;
    const level = asked ?? highest;
    const levels = [...recordLevels(report), ...replayLevels(replay), ...outputLevel(report)].filter(
      (one) => one.level <= level,
    );
    const findings = [
      ...recordFindings({ ...report, missing: [], notices: [] }),
      ...signatureFindings(report, known === undefined ? key : undefined),
      ...replay.findings,
      ...blobFindings,
      ...(report.purged === 0
        ? []
        : [finding("body_purged", `the content of ${report.purged} event(s) was purged before it was exported`)]),
    ].filter((found) => found.level <= level);
    const empty =
      level > highest
        ? [{ ...finding("nothing_to_verify", `a bundle has nothing that level ${level} examines`), level }]
        : nothingExamined(levels, asked);
    const all = [...findings, ...empty];
    const [first] = all.filter(({ weight }) => weight === "unproven");
    const result = resultOf(all);
    return {
      result,
      ...(result === "cannotVerify" && first !== undefined ? { reason: first.message } : {}),
      report,
      levels,
      findings: all,
      running: replay.running,
      violations: [],
    };
  } catch (error) {
    return cannot(toHeddleError(error).message);
  }
}

function outputLevel({ blobs }: Pick<ExportReport, "blobs">): readonly LevelExamined[] {
  return blobs === 0
    ? []
    : [{ level: OUTPUTS, name: "effects", examined: blobs, what: counted(blobs, "whole output") }];
}

/** undefined: it names no file, so that it is the id of a key. */
export function publicKeyIn(key: string): string | undefined {
  const found = statSync(key, { throwIfNoEntry: false });
  if (found?.isFile() !== true) return undefined;
  if (found.size > MAX_KEY_BYTES) throw new HeddleError("usage.invalid", `${key} is not a public key: it is too large`);
  return readFileSync(key, "utf8");
}

type Signed = Pick<Awaited<ReturnType<typeof verifyExport>>, "keyId" | "unsigned" | "isSealed">;

function signatureFindings({ keyId, unsigned, isSealed }: Signed, key: string | undefined): readonly Finding[] {
  if (keyId === undefined) return [finding("key_missing", "nothing in it is signed")];
  if (key !== undefined && key !== keyId) return [finding("wrong_key", `it is signed by key ${keyId}, not by ${key}`)];
  if (!isSealed)
    return [
      finding("key_missing", "no signature covers all of it, so that whole streams or their ends may be missing"),
    ];
  return unsigned.map(({ stream, signedTo, lastVersion }) =>
    finding(
      "checkpoint_missing",
      `of ${stream} only the events up to ${signedTo} of ${lastVersion} are signed; the others may have been added after the export. Export it again with this version: heddle threads export`,
      { stream },
    ),
  );
}
