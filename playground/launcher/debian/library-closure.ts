/** The libraries among the dependencies in a `Depends` field; of alternatives, the first. */
export function libraryDependencies(depends: string): readonly string[] {
  return depends.split(',').flatMap((clause) => {
    const name = /^\s*([a-z0-9][a-z0-9+.-]*)/.exec(clause)?.[1]
    return name !== undefined && isLibrary(name) ? name : []
  })
}

/**
 * Packages of shared libraries by their names; Redis is linked with Lua modules. Perl modules and the C library's
 * optional parts have such names too, but nothing to load.
 */
function isLibrary(name: string): boolean {
  return /^(lib.*\d|zlib1g|lua-)/.test(name) && !/-(perl|bin|common|data|modules|extra)$/.test(name)
}

/**
 * The packages given and every library that they need, directly or not.
 * `isNeeded` leaves out libraries that are there already; what only those need is left out too.
 */
export async function libraryClosure(options: {
  readonly packages: readonly string[]
  readonly dependsOf: (names: readonly string[]) => Promise<readonly string[]>
  readonly isNeeded: (library: string) => boolean
}): Promise<readonly string[]> {
  const all = new Set(options.packages)
  let added = options.packages
  while (added.length > 0) {
    const libraries = (await options.dependsOf(added)).flatMap(libraryDependencies)
    added = [...new Set(libraries)].filter((name) => !all.has(name) && options.isNeeded(name))
    for (const name of added) all.add(name)
  }
  return [...all]
}
