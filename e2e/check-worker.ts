/** `HOME ACKNOWLEDGED`: prints what is wrong with a home as JSON, for homes on a disk that only a child can see. */
import { checkHome, type Acknowledged } from "./checker.ts";

const [home = "", acknowledged = "[]"] = process.argv.slice(2);
const given = JSON.parse(acknowledged) as readonly Acknowledged[];
process.stdout.write(JSON.stringify(await checkHome(home, { acknowledged: given, effects: [] })));
