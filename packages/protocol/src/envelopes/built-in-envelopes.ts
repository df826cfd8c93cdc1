/** The ids of the built-in envelopes, for schemas. What each of them allows is in the registry, which has these and no others. */
export const BUILT_IN_ENVELOPE_IDS = [
  "explore",
  "plan",
  "edit",
  "test",
  "review",
  "deploy",
  "reflect",
  "observe",
  "full",
] as const;
export type BuiltInEnvelopeId = (typeof BUILT_IN_ENVELOPE_IDS)[number];

/** For a field that names an envelope: users and projects have others. */
export const ENVELOPE_EXAMPLES = { examples: [...BUILT_IN_ENVELOPE_IDS] };
