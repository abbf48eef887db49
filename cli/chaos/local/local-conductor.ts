import { LocalService } from "./local-service.ts";

/** A conductor, which keeps its address over restarts. */
export class LocalConductor extends LocalService {
  /** 0 until it has started for the first time. */
  port = 0;

  override async start(): Promise<string> {
    const note = await super.start();
    this.port = Number(/agents at \S+?:(\d+)/.exec(note)?.[1] ?? 0);
    return note;
  }
}
