/** Whose data a session store holds. */
export interface StoreIdentity {
  /** Names the data of the session store, for this pool. @throws while the store does not answer */
  readonly name: () => Promise<string>
  /** After this time without a gateway of the store, another store may take what belongs to it. */
  readonly staleAfterMs: number
}
