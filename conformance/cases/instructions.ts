/** What `exec` tells the model besides the prompt: by -c, by config.toml, by guides, and in a resumed thread. */
import { configured, json, say, type ExecCase } from "../exec-case.ts";

const HELLO = [say("Hello."), say("Again.")];

export const INSTRUCTION_CASES: readonly ExecCase[] = [
  {
    id: "instructions-overrides",
    about: "instructions by -c, beside those of the file",
    marks: ["FILED", "BASE", "DEVELOPER"],
    config: configured('instructions = "FILED"\ndeveloper_instructions = "FILED"'),
    script: HELLO,
    runs: [json("-c", 'instructions="BASE"', "-c", "developer_instructions=DEVELOPER")],
  },
  {
    id: "instructions-override-file",
    about: "a file with instructions by -c, relative to where it is started",
    marks: ["FROMFILE"],
    files: { "ws/base.md": "FROMFILE" },
    script: HELLO,
    runs: [json("-c", "model_instructions_file=base.md")],
  },
  {
    id: "instructions-override-file-missing",
    about: "a file with instructions that is not there, by -c",
    runs: [json("-c", "model_instructions_file=none.md")],
  },
  {
    id: "instructions-override-file-blank",
    about: "a file with instructions that says nothing",
    files: { "ws/base.md": " \n" },
    runs: [json("-c", "model_instructions_file=base.md")],
  },
  {
    id: "instructions-override-answering",
    about: "verbosity, summaries and service tier by -c",
    marks: [],
    script: HELLO,
    runs: [json("-c", "model_verbosity=high", "-c", "model_reasoning_summary=detailed", "-c", "service_tier=flex")],
  },
  {
    id: "instructions-override-verbosity-unknown",
    about: "a verbosity that is none",
    runs: [json("-c", "model_verbosity=loud")],
  },
  {
    id: "instructions-resumed",
    about: "a resumed thread keeps its instructions",
    marks: ["BASE", "DEVELOPER"],
    script: HELLO,
    runs: [
      json("-c", 'instructions="BASE"', "-c", "developer_instructions=DEVELOPER"),
      { args: ["exec", "resume", "--json", "{thread}", "and now?"] },
    ],
  },
  {
    id: "instructions-resumed-otherwise",
    about: "a resumed thread is given other instructions",
    marks: ["BASE", "OTHER"],
    script: HELLO,
    runs: [
      json("-c", 'instructions="BASE"'),
      { args: ["exec", "resume", "--json", "-c", 'instructions="OTHER"', "{thread}", "and now?"] },
    ],
  },
  {
    id: "instructions-guides",
    about: "the guides of the home and of the repository",
    marks: ["HOMEGUIDE", "REPOGUIDE", "REPOOVERRIDE"],
    files: { "codex/AGENTS.md": "HOMEGUIDE", "ws/AGENTS.md": "REPOGUIDE", "ws/AGENTS.override.md": "REPOOVERRIDE" },
    script: HELLO,
    runs: [json()],
  },
  {
    id: "instructions-guides-by-other-names",
    about: "other names for guides and a limit, by -c",
    marks: ["TEAM1", "TEAM2"],
    files: { "ws/TEAM.md": "TEAM1TEAM2" },
    script: HELLO,
    runs: [json("-c", 'project_doc_fallback_filenames=["TEAM.md"]', "-c", "project_doc_max_bytes=5")],
  },
];
