package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateFor returns a self-signed certificate, which clients can use as CA to verify the connection. With a folder, the
// certificate is stored there, so that clients still trust the simulator after a restart.
func certificateFor(address net.Addr, folder string) (tls.Certificate, error) {
	if folder == "" {
		certificate, key, err := newCertificate(address)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("cannot create a certificate: %w", err)
		}
		return tls.X509KeyPair(certificate, key)
	}
	certificateFile, keyFile := filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem")
	stored, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err == nil {
		return stored, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, fmt.Errorf("cannot use the certificate in %s: %w", folder, err)
	}
	certificate, key, err := newCertificate(address)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot create a certificate: %w", err)
	}
	// The key is written first: if the certificate exists, the pair is complete.
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot store the certificate: %w", err)
	}
	if err := os.WriteFile(certificateFile, certificate, 0o644); err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot store the certificate: %w", err)
	}
	return tls.X509KeyPair(certificate, key)
}

func newCertificate(address net.Addr) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "vcsim"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if tcp, ok := address.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() && !tcp.IP.IsLoopback() {
		template.IPAddresses = append(template.IPAddresses, tcp.IP)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	keyDer, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDer}), nil
}
