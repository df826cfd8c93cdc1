/** `heddle logout`: takes one account out of the credential store, after telling the provider where that is possible. */
import { EXIT } from "@heddle/protocol";
import { openOwnAccounts } from "@heddle/runtime/accounts";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";

export const logoutCommand: Command = {
  usage: "logout [PROVIDER] [--profile NAME]",
  about:
    "Revokes a login where the provider allows it and removes that one entry from Heddle's credential store. PROVIDER is\n" +
    "openai unless another is named. Logins of other programs and keys in the environment are not touched.",
  options: [{ name: "profile", value: "NAME", help: "Which of several accounts at this provider" }],
  examples: ["heddle logout", "heddle logout openai-codex --profile work"],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [provider = "openai", ...more] = args.positionals;
  if (more.length > 0) throw usage("name one provider: heddle logout PROVIDER");
  await using accounts = await openOwnAccounts(env);
  const { wasLoggedIn, isRevoked } = await accounts.logout({ provider, profile: args.value("profile") });
  const { id } = accounts.registry.find(provider);
  const what = wasLoggedIn
    ? `logged out of ${id}${isRevoked ? ", and the login is revoked" : ""}`
    : `nothing is stored for ${id}`;
  process.stderr.write(`heddle: ${what}\n`);
  return EXIT.ok;
}
