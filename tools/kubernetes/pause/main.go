// Command pause does nothing: it holds the namespaces of a pod for as long as the pod lives.
package main

import "time"

func main() {
	for {
		time.Sleep(time.Hour)
	}
}
