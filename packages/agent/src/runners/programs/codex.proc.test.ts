import { inject } from "vitest";
import { playedSubject } from "../../../test/played-subject.ts";
import { runnerSuite } from "../runner.suite.ts";
import { codexDialect } from "./codex.ts";

runnerSuite(playedSubject("codex", codexDialect.capabilities, inject("children")));
