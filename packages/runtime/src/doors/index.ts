export { planDoors, type DoorChoices, type DoorPlan, type Doors } from "./open-doors.ts";
export type { TlsFiles } from "./address.ts";
export { loginAddress, type LoginAddress } from "./login-address.ts";
