/** The name that `typed` was most likely meant to be, with one mistake in each three characters at most. */
export const nearestName = (typed: string, names: readonly string[]): string | undefined =>
  [0, 1, 2, 3]
    .filter((mistakes) => mistakes * 3 <= Math.max(typed.length, 3))
    .flatMap((mistakes) => names.filter((name) => isWithin(typed.toLowerCase(), name.toLowerCase(), mistakes)))[0]

/** Whether so many characters inserted, deleted, replaced or swapped with their neighbour make `to` of `from`. */
const isWithin = (from: string, to: string, mistakes: number): boolean => {
  let same = 0
  while (same < from.length && from[same] === to[same]) same += 1
  const [a, b] = [from.slice(same), to.slice(same)]
  if (a === b || mistakes === 0) return a === b
  const isSwapped = a.length > 1 && a[0] === b[1] && a[1] === b[0]
  return [[1, 0], [0, 1], [1, 1], ...(isSwapped ? [[2, 2]] : [])].some(([i, j]) =>
    isWithin(a.slice(i), b.slice(j), mistakes - 1),
  )
}
