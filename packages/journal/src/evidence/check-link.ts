import { hashOf, sha256 } from "../record/chain.ts";
import type { Damage } from "../journal.ts";
import { integer, optionalText, text, toLink, type Row } from "../record/rows.ts";

export interface Head {
  readonly version: number;
  readonly hash: string;
}

export function checkLink(row: Row, before: Head): Damage | undefined {
  const link = toLink(row);
  const { stream, version } = link;
  const named = `event ${version} of ${stream}`;
  const found = (kind: Damage["kind"], message: string): Damage => {
    return { kind, message, stream, version, position: integer(row, "position") };
  };
  if (version !== before.version + 1) return found("version-gap", `${named} follows ${before.version}`);
  if (link.prevHash !== before.hash) return found("chain-broken", `${named} does not link to the one before it`);
  if (hashOf(link) !== text(row, "hash")) return found("event-altered", `${named} was altered`);
  const body = optionalText(row, "body");
  if (body !== undefined && sha256(body) !== link.bodyHash)
    return found("body-altered", `the content of ${named} was altered`);
  return undefined;
}
