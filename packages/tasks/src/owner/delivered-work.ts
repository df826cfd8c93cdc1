/** Which of the changes that were judged a verdict stood for. */
import type { TaskRecord } from "@heddle/protocol";
import { toText } from "@heddle/tools/raw-path";
import { admit } from "../judge/admit.ts";
import { pickDelivered } from "../judge/pick.ts";
import type { Change, FrozenWork, KeptTree } from "../tree/manifest.ts";
import type { Judgement } from "./recorded.ts";

/** As the spec or its owner says, or else by the names in the verdict. */
export function deliveredWork(
  { spec }: TaskRecord,
  judged: Judgement | undefined,
  { base, frozen, folder }: { readonly base: KeptTree; readonly frozen: FrozenWork; readonly folder: string },
): readonly Change[] {
  const deliver = judged?.accepted ?? spec.deliver;
  const names = new Set(judged?.checked.work?.delivered.map(({ path }) => path));
  const picked =
    deliver === undefined
      ? frozen.changes.filter(({ path }) => names.has(toText(path)))
      : pickDelivered(base, frozen, deliver);
  return admit({ spec, folder, base, frozen }, picked).picked;
}
