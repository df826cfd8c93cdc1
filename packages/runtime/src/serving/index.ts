export { openServing, type Serving } from "./open-serving.ts";
