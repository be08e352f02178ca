/** Memory that several users share. */
export interface ByteBudget {
  /** `false`: there is not that much left, and nothing was taken. */
  take(bytes: number): boolean
  give(bytes: number): void
  readonly taken: number
}

export const createByteBudget = (maxBytes: number): ByteBudget => {
  let taken = 0
  return {
    take: (bytes) => {
      if (taken + bytes > maxBytes) return false
      taken += bytes
      return true
    },
    give: (bytes) => {
      taken -= bytes
    },
    get taken() {
      return taken
    },
  }
}
