/** How many of the first ones are all there. */
export const leading = <T>(items: readonly T[], isThere: (item: T) => boolean): number => {
  const firstMissing = items.findIndex((item) => !isThere(item))
  return firstMissing === -1 ? items.length : firstMissing
}
