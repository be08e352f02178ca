/** Keeps what was learnt about costs over a restart: one text for each kind of engine. Who saves last wins. */
export interface CostProfileStore {
  /**
   * The text that was saved for a kind of engine; undefined when there is none.
   *
   * @throws when the store does not answer
   */
  load(engine: string): Promise<string | undefined>
  /** @throws when the store does not answer */
  save(engine: string, text: string): Promise<void>
}
