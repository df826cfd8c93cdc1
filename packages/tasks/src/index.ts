export type { NewTask, Tasks } from "./tasks.ts";
