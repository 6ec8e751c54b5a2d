import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A certificate authority for one test, made with openssl (EC P-256, in milliseconds). */
export type Authority = {
  readonly dir: string
  readonly caFile: string
  /** Writes `<name>.crt` and `<name>.key`. */
  issue(
    name: string,
    subject: string,
    extensions: string,
  ): Promise<{ readonly certFile: string; readonly keyFile: string }>
  /** A key pair to sign ServiceAccount tokens with. */
  signingKey(): Promise<{ readonly keyFile: string; readonly publicFile: string }>
}

export async function createAuthority(dir: string): Promise<Authority> {
  const file = (name: string): string => join(dir, name)
  const openssl = async (...args: string[]): Promise<void> => void (await run('openssl', args))
  const key = async (name: string): Promise<string> => {
    await openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file(`${name}.key`))
    return file(`${name}.key`)
  }
  const caKey = await key('ca')
  const caFile = file('ca.crt')
  await openssl('req', '-x509', '-new', '-key', caKey, '-days', '2', '-subj', '/CN=skyhookd-test', '-out', caFile)
  return {
    dir,
    caFile,
    async issue(name, subject, extensions) {
      const keyFile = await key(name)
      const [request, extensionFile, certFile] = [file(`${name}.csr`), file(`${name}.ext`), file(`${name}.crt`)]
      await writeFile(extensionFile, extensions)
      await openssl('req', '-new', '-key', keyFile, '-subj', subject, '-out', request)
      await openssl(
        'x509',
        '-req',
        '-in',
        request,
        '-CA',
        caFile,
        '-CAkey',
        caKey,
        '-days',
        '2',
        '-out',
        certFile,
        '-extfile',
        extensionFile,
        '-CAcreateserial',
        '-CAserial',
        file(`${name}.srl`),
      )
      return { certFile, keyFile }
    },
    async signingKey() {
      const keyFile = await key('service-account')
      await openssl('ec', '-in', keyFile, '-pubout', '-out', file('service-account.pub'))
      return { keyFile, publicFile: file('service-account.pub') }
    },
  }
}
