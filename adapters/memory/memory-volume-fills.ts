type EndFill = (isFilled: boolean) => void;

/**
 * The volumes that the in-process twin of Cinder is filling with images. A fill takes until it is finished, whatever status the volume shows meanwhile: calls that change the
 * volume's attachments hide it, as in Cinder 21, and a volume may then be filled twice at a time. Such calls are noted.
 */
export class MemoryVolumeFills {
  readonly #underWay = new Map<string, EndFill[]>();
  readonly #disturbances: string[] = [];

  /** The calls that touched a volume while it was being filled. */
  get disturbances(): readonly string[] {
    return this.#disturbances;
  }

  isUnderWay(volumeId: string): boolean {
    return this.#underWay.has(volumeId);
  }

  begin(volumeId: string, end: EndFill): void {
    this.#underWay.set(volumeId, [...(this.#underWay.get(volumeId) ?? []), end]);
  }

  /** Finishes the fills of one volume, or of all. One that Cinder did not finish, or that was interrupted by the end of its process, leaves the volume in `error`. */
  finish(isFilled: boolean, volumeId?: string): void {
    const ended = [...this.#underWay].filter(([id]) => volumeId === undefined || id === volumeId);
    for (const [id, ends] of ended) {
      this.#underWay.delete(id);
      for (const end of ends) end(isFilled);
    }
  }

  note(call: string, volumeId: string): void {
    if (this.isUnderWay(volumeId)) this.#disturbances.push(`${call} of volume ${volumeId}, which is being filled`);
  }
}
