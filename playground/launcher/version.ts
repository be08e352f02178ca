/** Major, minor and patch. */
export type Version = readonly [number, number, number]

/** The first `1.2.3` (or `1.2`) in a text, or undefined. */
export function parseVersion(text: string): Version | undefined {
  const match = /(?<![\d.])(\d+)\.(\d+)(?:\.(\d+))?/.exec(text)
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)]
}

/** Whether `version` is `minimum` or newer. */
export function isAtLeast(version: Version, minimum: Version): boolean {
  if (version[0] !== minimum[0]) return version[0] > minimum[0]
  if (version[1] !== minimum[1]) return version[1] > minimum[1]
  return version[2] >= minimum[2]
}

/** `1.40.0`. */
export function formatVersion(version: Version): string {
  return version.join('.')
}
