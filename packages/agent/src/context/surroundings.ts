/** What the model reads about its environment: workspace, sandbox, the guides that apply and the skills. */
import type { Envelope, EventOf, Network, TurnSettings } from "@heddle/protocol";
import type { SkillsFound } from "@heddle/tools";
import { loadGuides } from "./guides.ts";
import { foldersFromRoot } from "./repository.ts";
import { loadSkills, skillsText, type SkillChoices } from "./skills.ts";

export type Surroundings = Pick<EventOf<"context.loaded">, "text" | "sources"> & SkillsFound;

export interface SurroundingsOptions {
  readonly workspace: string;
  readonly envelope: Envelope;
  readonly settings: TurnSettings;
  readonly home: string;
  /** Codex's, where its configuration is used. */
  readonly codexHome: string | undefined;
  readonly userHome: string | undefined;
  readonly skills: SkillChoices | undefined;
  readonly signal: AbortSignal;
}

export async function loadSurroundings(options: SurroundingsOptions): Promise<Surroundings> {
  const folders = foldersFromRoot(options.workspace);
  const extraRoots = options.skills?.extraRoots();
  const { masked } = options.envelope;
  const [guides, { skills: found, skipped }] = await Promise.all([
    loadGuides({ ...options, masked }),
    loadSkills({ ...options, folders, masked, extraRoots, disabledPlugins: options.settings.disabledPlugins }),
  ]);
  const skills = found.filter((skill) => options.skills?.isEnabled(skill) ?? true);
  const sources = guides.map(({ text: _, ...source }) => source);
  const parts = [describeEnvironment(options)];
  if (guides.length > 0)
    parts.push("Guidance from the owner and the repository; where two disagree the later one wins.");
  for (const guide of guides) {
    const cut = guide.truncatedBytes > 0 ? `\n[${guide.truncatedBytes} bytes left out]` : "";
    parts.push(`<guide path=${JSON.stringify(guide.path)}>\n${guide.text}${cut}\n</guide>`);
  }
  const offered = skillsText(skills, options.home);
  if (offered !== undefined) parts.push(offered);
  return { text: parts.join("\n\n"), sources, skills, skipped };
}

function describeEnvironment({ workspace, envelope }: SurroundingsOptions): string {
  const writable = envelope.sandbox === "off" ? "everything" : envelope.writeRoots.join(", ") || "nothing";
  return [
    "<environment>",
    `workspace: ${workspace}`,
    `platform: ${process.platform}`,
    ...(envelope.readRoots === undefined ? [] : [`may read: ${envelope.readRoots.join(", ")}`]),
    `may write: ${writable}`,
    `network: ${networkText(envelope.network)}`,
    "</environment>",
  ].join("\n");
}

/** Enough to choose from; the proxy names the host that it refuses. */
const MAX_NAMED_HOSTS = 50;

function networkText(network: Network): string {
  if (typeof network === "string") return network === "all" ? "on" : "off";
  const named = network.slice(0, MAX_NAMED_HOSTS).join(", ");
  const more = network.length > MAX_NAMED_HOSTS ? ` and ${network.length - MAX_NAMED_HOSTS} more` : "";
  return `only ${named}${more}; by HTTP, through the proxy that the environment of commands names`;
}
