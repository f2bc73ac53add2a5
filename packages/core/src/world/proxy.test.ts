import { describe, expect, test } from 'vitest';
import { ProxyError, proxyFor, proxyFrom } from './proxy.ts';

const PROXY = 'http://proxy.example:3128';
const isProxied = (origin: string, noProxy = '') =>
  proxyFor(origin, { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY, NO_PROXY: noProxy }) !== undefined;

describe('proxyFrom', () => {
  test.each([
    ['http://proxy.example:3128', { protocol: 'http:', host: 'proxy.example', port: 3128 }],
    ['proxy.example:3128', { protocol: 'http:', host: 'proxy.example', port: 3128 }],
    ['https://proxy.example', { protocol: 'https:', host: 'proxy.example', port: 443 }],
    ['http://[::1]:8080', { protocol: 'http:', host: '::1', port: 8080 }],
  ])('proxyFrom parses %s', (text, proxy) => {
    expect(proxyFrom(text, 'HTTPS_PROXY')).toEqual({ ...proxy, authorization: undefined });
  });

  test('proxyFrom returns the user and password as a Proxy-Authorization header', () => {
    expect(proxyFrom('http://us%40er:p%3Ass@proxy:1', 'HTTPS_PROXY').authorization).toBe(
      `Basic ${Buffer.from('us@er:p:ss').toString('base64')}`,
    );
  });

  test.each(['socks5://u:s3cret@proxy:1080', 'socks5h://proxy:1080', 'ftp://proxy', 'http://', ':::'])(
    'proxyFrom rejects %s with an error that names the setting and omits the password',
    (text) => {
      expect(() => proxyFrom(text, 'HTTPS_PROXY')).toThrow(ProxyError);
      expect(() => proxyFrom(text, 'HTTPS_PROXY')).toThrow(/^HTTPS_PROXY (?!.*s3cret)/);
    },
  );
});

test('the scheme of the server URL selects the proxy variable; the name of the variable may be in lower case', () => {
  const env = { HTTPS_PROXY: 'http://secure:1', http_proxy: 'plain:2' };
  expect(proxyFor('https://cloud.example', env)?.host).toBe('secure');
  expect(proxyFor('http://cloud.example', env)?.host).toBe('plain');
  expect(proxyFor('https://cloud.example', { HTTPS_PROXY: 'big:1', https_proxy: 'small:1' })?.host).toBe(
    'big',
  );
  expect(proxyFor('https://cloud.example', { HTTPS_PROXY: '', https_proxy: 'small:1' })?.host).toBe('small');
  expect(proxyFor('https://cloud.example', { HTTP_PROXY: PROXY })).toBeUndefined();
  expect(proxyFor('https://cloud.example', {})).toBeUndefined();
});

describe('NO_PROXY, as Go interprets it', () => {
  test.each([
    ['https://127.0.0.1:6443', ''],
    ['https://127.1.2.3', ''],
    ['https://[::1]:6443', ''],
    ['https://[::ffff:127.0.0.1]', ''],
    ['https://localhost:6443', ''],
    ['https://cloud.example', '*'],
    ['https://cloud.example', 'other, *'],
    ['https://cloud.example', 'cloud.example'],
    ['https://CLOUD.example', 'Cloud.Example'],
    ['https://a.cloud.example', 'cloud.example'],
    ['https://a.cloud.example', '.cloud.example'],
    ['https://a.cloud.example', '*.cloud.example'],
    ['https://cloud.example:8443', 'cloud.example:8443'],
    ['https://cloud.example', 'cloud.example:443'],
    ['http://cloud.example', 'cloud.example:80'],
    ['https://10.0.0.1', '10.0.0.1'],
    ['https://10.0.0.1:6443', '10.0.0.1:6443'],
    ['https://10.1.2.3', ' x , 10.0.0.0/8'],
    ['https://[fd00::5]', 'fd00::/8'],
    ['https://[fd00::5]', 'fd00::5'],
    ['https://[fd00::5]:6443', '[fd00::5]:6443'],
  ])('%s is reached directly with NO_PROXY "%s"', (origin, noProxy) => {
    expect(isProxied(origin, noProxy)).toBe(false);
  });

  test.each([
    ['https://cloud.example', ''],
    ['https://cloud.example', 'loud.example'],
    ['https://cloud.example', '.cloud.example'],
    ['https://cloud.example', '*.cloud.example'],
    ['https://cloud.example', 'cloud.example:8443'],
    ['https://cloud.example', ':443'],
    ['https://notcloud.example', 'cloud.example'],
    ['https://11.0.0.1', '10.0.0.0/8'],
    ['https://10.0.0.1', '10.0.0.1:6443'],
    ['https://10.0.0.1', '10.0.0.0/99'],
    ['https://cloud.example', '10.0.0.0/8'],
    ['https://[fe00::5]', 'fd00::/8'],
    ['https://localhost.example', ''],
  ])('%s is proxied with NO_PROXY "%s"', (origin, noProxy) => {
    expect(isProxied(origin, noProxy)).toBe(true);
  });
});
