import { readFileSync } from 'node:fs'

/** The rules of the user in docs/redis.md, whose password is `password`. `prefix`: instead of the one there, `ctx:`. */
export const documentedRights = (prefix = 'ctx:'): readonly string[] => {
  const docs = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8')
  const [, rules] = /^ACL SETUSER gateway (.+)$/m.exec(docs) ?? []
  if (rules === undefined) throw new Error('docs/redis.md has no ACL SETUSER')
  return rules.replaceAll('ctx:', prefix).split(' ')
}
