/** The environment of this process, for those that start other programs with it. What the gateway itself obeys is read by `loadConfig`. */
export const processEnvironment = (): Readonly<Record<string, string | undefined>> => process.env
