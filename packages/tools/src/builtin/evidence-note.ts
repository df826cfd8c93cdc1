/** `evidence_note`: the agent leaves a finding for whoever works on the same later. It changes nothing but the record. */
import { textTool } from "../calls/call-item.ts";
import type { EvidencePort, Tool } from "../calls/tool.ts";
import { z } from "./schema.ts";

const id = z.string().check(z.minLength(1), z.maxLength(1024));

const Input = z.object({
  claim: z.enum(["goal", "step", "conclusion", "question", "correction"]),
  text: z.string().check(z.minLength(1), z.maxLength(4000)),
  subject_type: z.optional(id),
  subject_id: z.optional(id),
  files: z.optional(z.array(id).check(z.maxLength(32))),
  tags: z.optional(z.array(id).check(z.maxLength(32))),
  reply_to: z.optional(id),
});
type Input = z.infer<typeof Input>;

export function evidenceNote(port: EvidencePort): Tool<Input> {
  return textTool<Input>({
    name: "evidence_note",
    description:
      "Notes a goal, step, conclusion, question or correction where other agents and the user find it (evidence_search). reply_to: the entry it answers or corrects. Note what took effort to find out, with the files it is about.",
    input: Input,
    effects: [],
    deadlineMs: () => 15_000,
    async run({ claim, text, subject_type: type, subject_id: of, files = [], tags, reply_to: replyTo }, { callId }) {
      const entry = await port.note(
        {
          claim,
          text,
          ...(type === undefined || of === undefined ? {} : { subject: { type, id: of } }),
          refs: files.map((file) => ({ type: "file", id: file })),
          ...(tags === undefined ? {} : { tags }),
          ...(replyTo === undefined ? {} : { replyTo }),
        },
        callId,
      );
      return `Noted as entry ${entry.id}.`;
    },
  });
}
