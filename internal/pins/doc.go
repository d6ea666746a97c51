// Package pins keeps modules in go.mod until the code that uses them lands.
package pins
