import { inspect } from 'node:util'
import { expect, test } from '@jest/globals'
import { RedisScriptError, RedisUnavailableError } from '../../../src/redis/redis-connection.ts'
import { isReadOnlyRefusal, RedisSilentError, toRedisFault, withoutArguments } from '../../../src/redis/redis-fault.ts'

const replyError = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' })

test.each([
  ['a replica', "READONLY You can't write against a read only replica."],
  ['a full Redis', "OOM command not allowed when used memory > 'maxmemory'."],
  ['a full Redis 6, in a script', 'ERR Error running script (call to f_0): @user_script:3: -OOM command not allowed'],
  ['a loading Redis', 'LOADING Redis is loading the dataset in memory'],
  ['a missing permission', "NOPERM this user has no permissions to run the 'evalsha' command"],
  ['a missing permission in a script', "ERR The user executing the script can't run this command: 0123"],
  ['a missing login', 'NOAUTH Authentication required.'],
  ['a wrong password', 'WRONGPASS invalid username-password pair or user is disabled.'],
  ['a busy Redis', 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'],
  ['a Redis that cannot save', 'MISCONF Redis is configured to save RDB snapshots'],
  ['a replica without its master', 'MASTERDOWN Link with MASTER is down'],
  ['too few replicas', 'NOREPLICAS Not enough good replicas to write.'],
])('%s is unavailability by refusal', (_name, message) => {
  const fault = toRedisFault(replyError(message), 'begin')
  expect(fault).toBeInstanceOf(RedisUnavailableError)
  expect(fault).not.toBeInstanceOf(RedisSilentError)
  expect(fault.message).toBe('Redis refused begin')
})

test('a cluster that puts a command off until the last try refuses it, whatever that answered', () => {
  const error = new Error('Too many Cluster redirections. Last error: ReplyError: MOVED 1 127.0.0.1:7000')
  expect(toRedisFault(error, 'begin')).toEqual(new RedisUnavailableError('Redis refused begin'))
})

test.each([
  ['a lost connection', new Error('Connection is closed.')],
  ['no connection', new Error("Stream isn't writeable and enableOfflineQueue options is false")],
  ['no route', Object.assign(new Error('connect EHOSTUNREACH'), { code: 'EHOSTUNREACH' })],
  ['a value that is not an error', 'gone'],
])('%s is unavailability', (_name, error) => {
  const fault = toRedisFault(error, 'begin')
  expect(fault).toBeInstanceOf(RedisUnavailableError)
  expect(fault).not.toBeInstanceOf(RedisSilentError)
})

test.each([
  ['a mistake in a script', 'ERR user_script:1: Script attempted to access nonexistent global variable'],
  ['a key of another type', 'WRONGTYPE Operation against a key holding the wrong kind of value'],
  ['a text that only resembles a refusal', 'ERR value is LOADINGS or ROOMY'],
])('%s is an error of the script', (_name, message) => {
  expect(toRedisFault(replyError(message), 'begin')).toBeInstanceOf(RedisScriptError)
})

test('a fault does not contain the arguments of its command', () => {
  const error = Object.assign(replyError("ERR unknown command 'evalshb', with args beginning with: 'marker' 'x'"), {
    command: { name: 'evalsha', args: ['marker'] },
    code: 'ERR',
  })
  expect(inspect(toRedisFault(error, 'begin'), { depth: 20 })).not.toContain('marker')
  expect(withoutArguments(error)).toMatchObject({
    name: 'ReplyError',
    message: "ERR unknown command 'evalshb'",
    code: 'ERR',
  })
})

test.each([
  ["READONLY You can't write against a read only replica.", true],
  ['ERR Error running script: @user_script:3: -READONLY no writes', true],
  ['LOADING Redis is loading the dataset in memory', false],
])('%s makes the client reconnect: %s', (message, isReadOnly) => {
  expect(isReadOnlyRefusal(replyError(message))).toBe(isReadOnly)
})
