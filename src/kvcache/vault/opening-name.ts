/** Under which name what a session's first request says is kept until its turn has ended. */
export const openingName = (turnId: string): string => `opening:${turnId}`
