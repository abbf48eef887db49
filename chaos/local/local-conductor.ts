import { LocalService } from "./local-service.ts";

/** A conductor's process, which keeps its address over restarts. */
export class LocalConductor extends LocalService {
  /** The port; 0 until the first start. */
  port = 0;

  override async start(): Promise<string> {
    const note = await super.start();
    this.port = Number(/agents at \S+?:(\d+)/.exec(note)?.[1] ?? 0);
    return note;
  }
}
