/** Slash commands: those of Heddle, and the skills that the workspace has. */
import { homedir } from "node:os";
import { foldersFromRoot, loadSkills } from "@heddle/agent";
import { commandsUpdate, type AcpCommand } from "@heddle/dialects/acp";
import { reasonOf } from "@heddle/protocol";
import type { ServerContext } from "../rpc/call.ts";
import type { AcpConnection } from "./connection.ts";
import type { AcpSession } from "./session.ts";

const SKILLS_MS = 10_000;
/** A menu with more is none. */
const MAX_COMMANDS = 200;

const BUILT_IN = [
  { name: "compact", description: "Make the conversation shorter: its beginning becomes a summary" },
  { name: "review", description: "Judge the uncommitted changes, or what you name", hint: "what to look at" },
] as const satisfies readonly AcpCommand[];

interface FoundSkill {
  readonly name: string;
  readonly description: string;
  readonly path: string;
}

export async function skillsFor(server: ServerContext, workspace: string): Promise<readonly FoundSkill[]> {
  const { skills } = await loadSkills({
    folders: foldersFromRoot(workspace),
    home: server.home,
    userHome: homedir(),
    masked: [server.home],
    extraRoots: server.host.skills?.extraRoots(),
    signal: AbortSignal.timeout(SKILLS_MS),
  });
  return skills.filter((skill) => server.host.skills?.isEnabled(skill) ?? true);
}

/** After the session is open; without the list the client has no menu, and everything else works. */
export function sendCommands({ server }: AcpConnection, session: AcpSession): void {
  const names: ReadonlySet<string> = new Set(BUILT_IN.map(({ name }) => name));
  const send = async (): Promise<void> => {
    const skills = await skillsFor(server, session.workspace);
    const own = skills.filter(({ name }) => !names.has(name)).slice(0, MAX_COMMANDS);
    const offered = own.map(({ name, description }) => ({ name, description, hint: "what to do with it" }));
    session.send(commandsUpdate([...BUILT_IN, ...offered]));
  };
  send().catch((error: unknown) => server.log(`slash commands could not be listed: ${reasonOf(error)}`));
}
