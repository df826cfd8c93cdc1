export { refuseOpenDoor } from "./address.ts";
export { listen, parseListen, type TokenChoice } from "./listen.ts";
export { planDoors, type DoorChoices, type DoorPlan, type Doors } from "./open-doors.ts";
export { readTls, type TlsFiles } from "./address.ts";
