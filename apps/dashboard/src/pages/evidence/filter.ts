import type { EvidenceClient } from "@heddle/client";

export type EvidenceFilter = NonNullable<Parameters<EvidenceClient["count"]>[0]>;
